import type Router from '@koa/router';
import type { Services } from '../../api/services.ts';
import type { Database } from '../../shared/database/database.ts';
import { loadProduct } from './gateway.ts';

/** Stands for whatever the routes are made with and do not use before a request comes. */
const anything: unknown = new Proxy(() => undefined, {
  get: (_target, name) => (name === Symbol.iterator ? () => [][Symbol.iterator]() : anything),
  apply: () => anything,
});

/** Every route of the application, as `GET /v1/models`; a route for all methods is one for `ALL`. */
export async function appRoutes(): Promise<string[]> {
  const { createApp } = await loadProduct<typeof import('../../api/app.ts')>('api/app');
  const { BaseUrls } =
    await loadProduct<typeof import('../../api/http/request-address.ts')>('api/http/request-address');
  const { ForwardedHeaders } =
    await loadProduct<typeof import('../../api/http/trusted-proxies.ts')>('api/http/trusted-proxies');
  const { createCatalogue } =
    await loadProduct<typeof import('../../shared/catalogue/catalogue.ts')>('shared/catalogue/catalogue');
  const { readConfig } = await loadProduct<typeof import('../../shared/config/config.ts')>('shared/config/config');
  const config = readConfig({});
  const known: Partial<Services> = {
    config,
    catalogue: createCatalogue(config),
    baseUrls: new BaseUrls(['http://127.0.0.1'], new ForwardedHeaders(0)),
    queues: new Map(),
  };
  const services = new Proxy(known, {
    get: (target, name) => (Object.hasOwn(target, name) ? target[name as keyof Services] : anything),
  }) as Services;
  const app = createApp(services, anything as Database, () => false);
  const routers = app.middleware.flatMap((middleware) => ('router' in middleware ? [middleware.router as Router] : []));
  return routers.flatMap(({ stack }) =>
    stack.flatMap(({ path, methods }) => {
      const asked = methods.filter((method) => method !== 'HEAD');
      return asked.length > 5 ? [`ALL ${path}`] : asked.map((method) => `${method} ${path}`);
    }),
  );
}
