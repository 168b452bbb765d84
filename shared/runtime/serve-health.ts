import { createServer, type Server } from 'node:http';
import type { RedisClient } from '../redis/redis.ts';
import { listen } from './listen.ts';
import { redisLag } from './metrics.ts';
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
    if (request.url === '/healthz') response.end('{"status":"ok"}');
    else if (request.url === '/readyz') {
      const isReady = (await redisLag(redis)) >= 0;
      response.statusCode = isReady ? 200 : 503;
      response.end(JSON.stringify({ status: isReady ? 'ok' : 'unavailable' }));
    } else if (request.url === '/metrics') {
      await answerScrape(request, response, scrapes, metricsToken);
    } else {
      response.statusCode = 404;
      response.end();
    }
  });
  await listen(server, port, { host }, setting);
  return server;
}
