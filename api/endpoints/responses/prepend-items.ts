import { type RequestBytes, type RequestText, requestBytes } from '../../pipeline/request-text.ts';

const head = '{"input":[';
const closingBracket = 0x5d;

/**
 * Inserts earlier turns before the items of a response job's text. Neither is parsed, however long they are.
 * @param request JSON text that starts with `"input"`, as made by `parseResponse`
 * @param items JSON text of a list: `[…]`
 */
export function prependItems<Request extends RequestText>(request: Request, items: string): Request {
  const earlier = items.trim().slice(1, -1).trim();
  if (earlier === '') return request;
  return (typeof request === 'string' ? inText(request, earlier) : inBytes(request, earlier)) as Request;
}

function inText(request: string, earlier: string): string {
  const rest = request.slice(head.length);
  return `${head}${earlier}${rest.startsWith(']') ? '' : ','}${rest}`;
}

/** The first part has more than the head: only long fields are parts of their own, and they follow their key. */
function inBytes({ parts: [first = new Uint8Array(), ...others] }: RequestBytes, earlier: string): RequestBytes {
  const rest = first.subarray(head.length);
  const before = Buffer.from(`${head}${earlier}${rest[0] === closingBracket ? '' : ','}`);
  return requestBytes([before, rest, ...others]);
}
