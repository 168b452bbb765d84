import { createServer, type Server } from 'node:http';
import type { Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import type Koa from 'koa';
import { listen } from '../shared/runtime/listen.ts';
import { unusedConnections } from './bounds/connections.ts';
import { answerClientErrors, routeExpectations } from './http/client-errors.ts';
import { UpgradableRequest } from './http/request-address.ts';
import { routeUpgrades } from './http/websocket-upgrades.ts';
import type { Handover } from './replies/client-connection.ts';
import type { Services } from './services.ts';
import type { State } from './state.ts';

/** The api's HTTP server. */
export interface ApiServer {
  /** @throws ConfigError when the port is taken or may not be used. */
  listen(): Promise<void>;
  /**
   * Still takes requests, each connection's last one, for the lame duck's time or until the signal: whoever sends them has
   * that time to see that this process is not ready, and calls others.
   */
  leave(signal: AbortSignal): Promise<void>;
  /** Stops accepting, lets running requests finish until the signal, then hands the rest over. */
  drain(signal: AbortSignal): Promise<void>;
}

/** The server of an app, not yet listening. */
export function createApiServer(app: Koa<State>, services: Services): ApiServer {
  // Koa's own console output is off: the errors middleware has seen everything that matters.
  app.silent = true;
  const handle = app.callback();
  const server = createServer({
    keepAliveTimeout: 65_000,
    requestTimeout: 300_000,
    noDelay: true,
    // Node would refuse such a request itself, without a body, an id or a line in the log: `refuseOddRequests` does.
    requireHostHeader: false,
    IncomingMessage: UpgradableRequest,
  });
  services.connections.watch(server);
  server.on('request', handle);
  routeUpgrades(server, handle);
  routeExpectations(server, handle);
  answerClientErrors(server, services);
  const unused = unusedConnections(server);
  return {
    listen: () => listen(server, services.config.port, services.config),
    leave: async (signal) => {
      services.connections.leave();
      await delay(services.config.lameDuckMs, undefined, { signal }).catch(() => undefined);
    },
    drain: (signal) => {
      services.connections.leave();
      return drain(server, unused, services.handover, signal);
    },
  };
}

/** Stops accepting, lets running requests finish until the signal, then hands the rest over. */
async function drain(
  server: Server,
  unused: ReadonlySet<Socket>,
  handover: Handover,
  signal: AbortSignal,
): Promise<void> {
  const closed = new Promise<void>((resolve) => server.close(() => resolve()));
  server.closeIdleConnections();
  handover.drain();
  const onAbort = (): void => handover.handOver();
  signal.addEventListener('abort', onAbort, { once: true });
  // Connections that were busy at the first call become idle one by one.
  const idle = setInterval(() => {
    server.closeIdleConnections();
    for (const socket of unused) socket.destroy();
  }, 100);
  const late = new Promise<void>((resolve) => {
    signal.addEventListener('abort', () => setTimeout(resolve, 2000), { once: true });
  });
  await Promise.race([closed, late]);
  clearInterval(idle);
  server.closeAllConnections();
  // Their connections are closed, but jobs whose callers have just left may still be on their way to an end.
  for (let waited = 0; handover.size > 0 && waited < 2000; waited += 20) {
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}
