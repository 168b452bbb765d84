import { type Agent, request } from 'node:http';
import type { WireRequest } from './requests.ts';

/** What came back. */
export interface FuzzAnswer {
  /** Undefined: none, with why. */
  readonly status: number | undefined;
  readonly why: string;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly text: string;
  /** Whether it came to its end. */
  readonly isWhole: boolean;
}

/** More than an answer of these samples has. */
const maxBytes = 4 * 1024 * 1024;

/** Sends a request, and reads what comes back to its end. Never rejects. */
export function send(
  baseUrl: string,
  wire: WireRequest,
  options: { agent: Agent; patienceMs: number },
): Promise<FuzzAnswer> {
  const { hostname, port } = new URL(baseUrl);
  return new Promise((resolve) => {
    const none = (why: string): void => resolve({ status: undefined, why, headers: {}, text: '', isWhole: false });
    let sent: ReturnType<typeof request>;
    try {
      const { method, path, headers } = wire;
      sent = request({ hostname, port, method, path, headers, agent: options.agent });
    } catch (error) {
      // Node refuses to send it.
      none(`not sent: ${error}`);
      return;
    }
    const timer = setTimeout(() => {
      none('no answer in time');
      sent.destroy();
    }, options.patienceMs);
    sent.on('error', (error) => {
      clearTimeout(timer);
      none(`${(error as NodeJS.ErrnoException).code ?? error}`);
    });
    sent.on('upgrade', (_response, socket) => socket.destroy());
    sent.on('response', async (response) => {
      let text = '';
      try {
        for await (const chunk of response.setEncoding('utf8')) if (text.length < maxBytes) text += chunk;
      } catch {
        // Not whole.
      }
      clearTimeout(timer);
      resolve({ status: response.statusCode, why: '', headers: response.headers, text, isWhole: response.complete });
    });
    sent.end(wire.body);
  });
}
