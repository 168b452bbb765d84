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
  await sendMetrics(request, response, scrapes);
}

/** Sends the metrics, or a 500: a failure must not reach the process as an unhandled rejection, which would close it. */
async function sendMetrics(request: IncomingMessage, response: ServerResponse, scrapes: Scrapes): Promise<void> {
  try {
    const { text, contentType } = await scrapes.read(request);
    response.setHeader('content-type', contentType);
    response.end(text);
  } catch {
    response.statusCode = 500;
    response.end('The metrics could not be collected.\n');
  }
}

/** A server for `/metrics` only, for a separate port. Without a token it is open to everyone who can reach that port. */
export function metricsServer(token: string | undefined, scrapes: Scrapes): Server {
  return createServer(async (request, response) => {
    if (request.url?.split('?')[0] !== '/metrics') {
      response.statusCode = 404;
      response.end();
    } else if (token === undefined) await sendMetrics(request, response, scrapes);
    else await answerScrape(request, response, scrapes, token);
  });
}
