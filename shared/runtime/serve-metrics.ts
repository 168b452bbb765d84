import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { mayReadMetrics, type Scrapes } from './metrics-access.ts';

/** Answers a scrape, or refuses it with a 403. */
export async function answerScrape(
  request: IncomingMessage,
  response: ServerResponse,
  scrapes: Scrapes,
  token: string | undefined,
): Promise<void> {
  if (!mayReadMetrics(request, token)) {
    response.statusCode = 403;
    response.end('Metrics are for this machine, or for whoever sends METRICS_TOKEN as a bearer token.\n');
    return;
  }
  response.setHeader('content-type', scrapes.contentType);
  response.end(await scrapes.read());
}

/** A server for `/metrics` only, for a separate port. Without a token it is open to everyone who can reach that port. */
export function metricsServer(token: string | undefined, scrapes: Scrapes): Server {
  return createServer(async (request, response) => {
    if (request.url?.split('?')[0] !== '/metrics') {
      response.statusCode = 404;
      response.end();
    } else if (token === undefined) {
      response.setHeader('content-type', scrapes.contentType);
      response.end(await scrapes.read());
    } else await answerScrape(request, response, scrapes, token);
  });
}
