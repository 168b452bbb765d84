// Loaded into api processes under test, before the product: keeps a copy of their answers in the file that TEST_ANSWERS names,
// a line of JSON each, for `documented-answers.ts`. Bounded: a few of each kind, none that is large. What is sent is not touched.
import { appendFileSync } from 'node:fs';
import { OutgoingMessage, ServerResponse } from 'node:http';

const file = process.env.TEST_ANSWERS;
/** Of each method, path without ids, status and type. */
const maxOfKind = 10;
const maxKinds = 2000;
const maxBytes = 256 * 1024;

const kinds = new Map();
/** What was written of the answers under way that are JSON. */
const bodies = new WeakMap();

ServerResponse.prototype.write = function write(chunk, ...rest) {
  const fits = OutgoingMessage.prototype.write.call(this, chunk, ...rest);
  keep(this, chunk, rest[0]);
  return fits;
};

ServerResponse.prototype.end = function end(chunk, ...rest) {
  OutgoingMessage.prototype.end.call(this, chunk, ...rest);
  if (chunk !== undefined && chunk !== null && typeof chunk !== 'function') keep(this, chunk, rest[0]);
  finish(this);
  return this;
};

function keep(response, chunk, encoding) {
  const body = bodies.get(response) ?? { chunks: [], bytes: 0 };
  bodies.set(response, body);
  body.bytes += chunk.length;
  // A stream's events are not kept: what is too large is told by its size alone.
  if (body.bytes > maxBytes || /^content-type: text\/event-stream/im.test(response._header)) body.chunks.length = 0;
  else body.chunks.push(typeof chunk === 'string' ? Buffer.from(chunk, encoding) : Buffer.from(chunk));
}

function finish(response) {
  const { method, url } = response.req;
  const type = header(response, 'content-type') ?? '';
  const status = response.statusCode;
  const kind = `${method} ${url.replace(/\?.*|[0-9a-f]{16,}|\d{6,}/g, '')} ${status} ${type}`;
  const seen = (kinds.get(kind) ?? 0) + 1;
  if (seen > maxOfKind || kinds.size > maxKinds) return;
  kinds.set(kind, seen);
  const { chunks, bytes } = bodies.get(response) ?? { chunks: [], bytes: 0 };
  const isWhole = bytes <= maxBytes && header(response, 'content-encoding') === undefined;
  const body = isWhole && /^application\/json/.test(type) ? Buffer.concat(chunks).toString() : undefined;
  appendFileSync(file, `${JSON.stringify({ method, url, status, type, bytes, body })}\n`);
}

/** As it was sent, however it was set. */
function header(response, name) {
  return new RegExp(`^${name}: (.*)$`, 'im').exec(response._header)?.[1]?.trim();
}
