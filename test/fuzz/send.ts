import { type Agent, type IncomingMessage, request } from 'node:http';
import zlib from 'node:zlib';
import type { WireRequest } from './requests.ts';

/** What came back. */
export interface FuzzAnswer {
  /** Undefined if there is none. */
  readonly status: number | undefined;
  /** Why there is no answer, or why it is not whole if it did not break off; else empty. */
  readonly why: string;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  /** Its body, without its content encoding. */
  readonly text: string;
  /** Whether it came to its end and its content encoding could be undone. */
  readonly isWhole: boolean;
}

/** More than an answer of these samples has, as sent and decoded. */
const maxBytes = 4 * 1024 * 1024;

type Decode = (body: Buffer, options: { readonly maxOutputLength: number }) => Buffer;

/** Missing in the types of the oldest version of Node. */
const { zstdDecompressSync } = zlib as unknown as { readonly zstdDecompressSync?: Decode };

const decoders: Readonly<Record<string, Decode>> = {
  identity: (body) => body,
  gzip: zlib.gunzipSync,
  'x-gzip': zlib.gunzipSync,
  deflate: zlib.inflateSync,
  br: zlib.brotliDecompressSync,
  ...(zstdDecompressSync && { zstd: zstdDecompressSync }),
};

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
      const chunks: Buffer[] = [];
      let bytes = 0;
      try {
        for await (const chunk of response as AsyncIterable<Buffer>) {
          if (bytes < maxBytes) chunks.push(chunk);
          bytes += chunk.length;
        }
      } catch {
        // Not whole.
      }
      clearTimeout(timer);
      resolve(answerOf(wire, response, Buffer.concat(chunks)));
    });
    sent.end(wire.body);
  });
}

function answerOf({ method }: WireRequest, response: IncomingMessage, body: Buffer): FuzzAnswer {
  const { statusCode: status, headers, complete: isWhole } = response;
  // Their head describes the body of another answer.
  const isHeadOnly = method === 'HEAD' || status === 204 || status === 304;
  const encoding = headers['content-encoding'] ?? 'identity';
  if (!isWhole || isHeadOnly) return { status, why: '', headers, text: body.toString(), isWhole };
  try {
    return { status, why: '', headers, text: decoded(body, encoding).toString(), isWhole };
  } catch (error) {
    return { status, why: `does not decode as ${encoding}: ${error}`, headers, text: '', isWhole: false };
  }
}

/**
 * Undoes content encodings, the last one first.
 * @throws Error if one is unknown, or the body is malformed or longer than `maxBytes` without it.
 */
function decoded(body: Buffer, encodings: string): Buffer {
  const names = encodings.split(',').map((name) => name.trim().toLowerCase());
  return names.reduceRight((encoded, name) => {
    const decode = Object.hasOwn(decoders, name) ? decoders[name] : undefined;
    if (decode === undefined) throw new Error(`unknown content encoding ${name}`);
    return decode(encoded, { maxOutputLength: maxBytes });
  }, body);
}
