import { createServer, type Server } from 'node:http';
import type { RedisClient } from '../redis/redis.ts';
import { listen } from './listen.ts';
import { redisState } from './metrics.ts';
import type { Scrapes } from './metrics-access.ts';
import { answerScrape } from './serve-metrics.ts';

/**
 * Serves `/healthz`, `/readyz` and `/metrics` of a process other than an api.
 * @param setting the one that names the port
 * @throws ConfigError when the port is taken or may not be used.
 */
export async function serveHealth(
  {
    port,
    host,
    metricsToken,
  }: { readonly port: number; readonly host: string; readonly metricsToken: string | undefined },
  scrapes: Scrapes,
  redis: RedisClient,
  setting: string,
): Promise<Server> {
  const server = createServer(async (request, response) => {
    const path = request.url?.split('?')[0];
    if (path === '/healthz') response.end('{"status":"ok"}');
    else if (path === '/readyz') {
      const state = await redisState(redis);
      response.statusCode = state === 'ok' ? 200 : 503;
      response.end(JSON.stringify({ status: state === 'ok' ? 'ok' : 'unavailable', checks: { redis: state } }));
    } else if (path === '/metrics') {
      await answerScrape(request, response, scrapes, metricsToken);
    } else {
      response.statusCode = 404;
      response.end();
    }
  });
  await listen(server, port, { host }, setting);
  return server;
}
