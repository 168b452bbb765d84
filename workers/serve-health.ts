import { createServer, type Server } from 'node:http';
import type { RedisClient } from '../shared/redis/redis.ts';
import { redisLag } from '../shared/runtime/metrics.ts';
import type { Scrapes } from '../shared/runtime/metrics-access.ts';
import { answerScrape } from '../shared/runtime/serve-metrics.ts';

/** Serves `/healthz`, `/readyz` and `/metrics` of a worker that has a port. */
export function serveHealth(
  {
    port,
    host,
    metricsToken,
  }: { readonly port: number; readonly host: string; readonly metricsToken: string | undefined },
  scrapes: Scrapes,
  redis: RedisClient,
): Server {
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
  return server.listen(port, host);
}
