// Loaded into api processes under test, before the product: keeps a copy of their answers in the file that TEST_ANSWERS names,
// a line of JSON each, for `documented-answers.ts`. Bounded: a few of each kind, none that is large. What is sent is not touched.
import { appendFileSync } from 'node:fs';
import { OutgoingMessage, ServerResponse } from 'node:http';
import { gunzipSync } from 'node:zlib';

const file = process.env.TEST_ANSWERS;
const port = Number(process.env.PORT);
/** Of each method, path without ids, status and type: so many are looked at, and of these so many of different shapes kept. */
const maxSeen = 300;
const maxShapes = 50;
const maxKinds = 2000;
const maxBytes = 256 * 1024;
const maxTotalBytes = 32 * 1024 * 1024;

const kinds = new Map();
let totalBytes = 0;
/** What was written of the answers under way that are JSON. */
const bodies = new WeakMap();

ServerResponse.prototype.write = function write(chunk, ...rest) {
  const fits = OutgoingMessage.prototype.write.call(this, chunk, ...rest);
  keep(this, chunk, rest[0]);
  return fits;
};

ServerResponse.prototype.end = function end(chunk, ...rest) {
  // What ends because its client has left is no answer to anybody, and the port for metrics is not the API's.
  const isTaken = this.socket?.writable === true && this.socket.localPort === port;
  OutgoingMessage.prototype.end.call(this, chunk, ...rest);
  if (chunk !== undefined && chunk !== null && typeof chunk !== 'function') keep(this, chunk, rest[0]);
  if (isTaken) finish(this);
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
  const known = kinds.get(kind) ?? { seen: 0, shapes: new Set() };
  if (++known.seen > maxSeen || known.shapes.size >= maxShapes || kinds.size > maxKinds) return;
  kinds.set(kind, known);
  const { chunks, bytes } = bodies.get(response) ?? { chunks: [], bytes: 0 };
  const isJson = bytes <= maxBytes && /^application\/json/.test(type);
  const body = isJson ? textOf(Buffer.concat(chunks), header(response, 'content-encoding')) : undefined;
  const shape = shapeOf(body ?? String(bytes === 0));
  if (known.shapes.has(shape)) return;
  known.shapes.add(shape);
  const line = `${JSON.stringify({ method, url, status, type, bytes, body })}\n`;
  totalBytes += line.length;
  if (totalBytes <= maxTotalBytes) appendFileSync(file, line);
}

function textOf(body, encoding) {
  if (encoding === undefined) return body.toString();
  return encoding === 'gzip' ? gunzipSync(body).toString() : undefined;
}

/** JSON text without its texts and numbers, so that what differs in these alone is one shape. Names of fields stay. */
function shapeOf(text) {
  return text.replace(/"(?:[^"\\]|\\.)*"(?!\s*:)|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g, '0');
}

/** As it was sent, however it was set. */
function header(response, name) {
  return new RegExp(`^${name}: (.*)$`, 'im').exec(response._header)?.[1]?.trim();
}
