import { createServer, type Server } from 'node:http';
import { type Registry, redisLag } from '../shared/metrics.ts';
import type { RedisClient } from '../shared/redis.ts';

/** `/healthz`, `/readyz` and `/metrics` of a worker, where it has a port. */
export function serveHealth(port: number, host: string, registry: Registry, redis: RedisClient): Server {
  const server = createServer(async (request, response) => {
    if (request.url === '/healthz') response.end('{"status":"ok"}');
    else if (request.url === '/readyz') {
      const isReady = (await redisLag(redis)) >= 0;
      response.statusCode = isReady ? 200 : 503;
      response.end(JSON.stringify({ status: isReady ? 'ok' : 'unavailable' }));
    } else if (request.url === '/metrics') {
      response.setHeader('content-type', registry.contentType);
      response.end(await registry.metrics());
    } else {
      response.statusCode = 404;
      response.end();
    }
  });
  return server.listen(port, host);
}
