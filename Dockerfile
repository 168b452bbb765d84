# One image for every role: the command says which (api by default; `node dist/workers/main.js chat` for a worker).
# The base by its digest (of the list for all platforms), since a tag can be moved. `docker buildx imagetools inspect NAME`
# prints the digest of a newer one, for --build-arg NODE_IMAGE=…
ARG NODE_IMAGE=node:24.18.0-bookworm-slim@sha256:6f7b03f7c2c8e2e784dcf9295400527b9b1270fd37b7e9a7285cf83b6951452d
FROM ${NODE_IMAGE} AS build
WORKDIR /app
COPY package.json package-lock.json ./
RUN npm ci --no-audit --no-fund
COPY build.mjs build-state.mjs tsconfig.json tsconfig.build.json ./
COPY api api
COPY console console
COPY launcher launcher
COPY sandbox sandbox
COPY shared shared
COPY workers workers
RUN npm run build

FROM ${NODE_IMAGE} AS dependencies
WORKDIR /app
COPY package.json package-lock.json ./
RUN npm ci --omit=dev --no-audit --no-fund && npm cache clean --force

FROM ${NODE_IMAGE}
ENV NODE_ENV=production HOST=0.0.0.0 PORT=8080 WORKER_PORT=9090 SLUICE_DATA_DIR=/data
# The SDK's warning is about versions of it to come, and this image has the one of package-lock.json.
ENV AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED=true
WORKDIR /app
RUN mkdir -m 700 /data && chown node:node /data
COPY --from=dependencies /app/node_modules node_modules
COPY --from=build /app/dist dist
COPY package.json LICENSE ./
USER node
VOLUME /data
EXPOSE 8080
# An api answers on PORT, a worker on WORKER_PORT and a ledger process on METRICS_PORT, where these are set. (/healthz of an api is not on
# its METRICS_PORT.)
HEALTHCHECK --interval=10s --timeout=5s --start-period=20s --retries=3 \
  CMD ["node", "-e", "const { WORKER_PORT, PORT, METRICS_PORT } = process.env; const ask = async (port) => { if (!(await fetch('http://127.0.0.1:' + port + '/healthz')).ok) throw new Error(port); }; Promise.any([WORKER_PORT, PORT, METRICS_PORT].filter(Boolean).map(ask)).then(() => process.exit(0), () => process.exit(1))"]
CMD ["node", "--max-semi-space-size=16", "--no-minor-gc-task", "--no-allocation-site-pretenuring", "--v8-pool-size=1", "dist/api/main.js"]
