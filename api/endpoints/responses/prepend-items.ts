const head = '{"input":[';

/**
 * Inserts earlier turns before the items of a response job's text. Neither is parsed, however long they are.
 * @param request JSON text (or its bytes) that starts with `"input"`, as made by `parseResponse`
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
