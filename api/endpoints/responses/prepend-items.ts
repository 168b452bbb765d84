const head = '{"input":[';

/**
 * The text of a response job with more items before its own: the turns that it goes on from. Neither is parsed, however
 * long they are.
 * @param request JSON text (or its bytes) that begins with `"input"`, as `parseResponse` makes it
 * @param items JSON text of a list: `[…]`
 */
export function prependItems<Request extends string | Uint8Array<ArrayBuffer>>(
  request: Request,
  items: string,
): Request {
  const earlier = items.trim().slice(1, -1).trim();
  if (earlier === '') return request;
  return (typeof request === 'string' ? inText(request, earlier) : inBytes(request, earlier)) as Request;
}

function inText(request: string, earlier: string): string {
  const rest = request.slice(head.length);
  return `${head}${earlier}${rest.startsWith(']') ? '' : ','}${rest}`;
}

function inBytes(request: Uint8Array<ArrayBuffer>, earlier: string): Uint8Array<ArrayBuffer> {
  const rest = request.subarray(head.length);
  const isEmpty = rest[0] === 0x5d;
  const before = new TextEncoder().encode(`${head}${earlier}${isEmpty ? '' : ','}`);
  const joined = new Uint8Array(before.length + rest.length);
  joined.set(before);
  joined.set(rest, before.length);
  return joined;
}
