import { createServer } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import type { Configuration } from '../gateway.ts';

/** The model of such a vendor. */
export const endlessModel = 'endless';
/** So many deltas of so many characters, whatever was asked for; with 40 streams at a time they are 1 Gbit/s. */
const [deltas, deltaLength, restMs] = [3000, 100_000, 32];

/** The operator's file that gives a gateway this vendor, on a port of this machine. */
export function endlessConfiguration(port: number): Configuration {
  return {
    routing: { attempts: 1 },
    vendors: { endless: { like: 'openai', base_url: `http://127.0.0.1:${port}/v1`, api_keys: ['any'] } },
    models: {
      [endlessModel]: {
        capability: 'chat',
        prices: { input: 0.001, output: 0.001 },
        routes: [{ vendor: 'endless', model: endlessModel }],
      },
    },
  };
}

/** Starts a vendor whose streams are of 300 MB. It ends with its process. */
export function startEndlessVendor(port: number): void {
  const choice = { index: 0, delta: { content: 'x'.repeat(deltaLength) }, finish_reason: null };
  const event = `data: ${JSON.stringify({ id: 'endless', object: 'chat.completion.chunk', created: 1, model: endlessModel, choices: [choice] })}\n\n`;
  const server = createServer(async (request, response) => {
    request.resume();
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    for (let sent = 0; sent < deltas && !response.destroyed; sent++) {
      response.write(event);
      await delay(restMs);
    }
    response.end('data: [DONE]\n\n');
  });
  server.listen(port, '127.0.0.1');
}
