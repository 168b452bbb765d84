/**
 * The baseline without a queue: a plain Koa server that parses the request, forwards it to the vendor over a keep-alive
 * pool and pipes the answer back. The vendor's origin is its argument. Reports `{ port }` to its parent once it listens.
 */
import type { AddressInfo } from 'node:net';
import Koa from 'koa';
import { Pool } from 'undici';

const pool = new Pool(process.argv[2] ?? '', { headersTimeout: 0, bodyTimeout: 0 });
const app = new Koa();

app.use(async (context) => {
  let text = '';
  context.req.setEncoding('utf8');
  for await (const part of context.req) text += part;
  const request: unknown = JSON.parse(text);
  const answer = await pool.request({
    method: 'POST',
    path: context.path,
    headers: { 'content-type': 'application/json', authorization: 'Bearer bench' },
    body: JSON.stringify(request),
  });
  // A client that leaves destroys the body under way, which says so.
  answer.body.on('error', () => {});
  context.status = answer.statusCode;
  context.set('content-type', String(answer.headers['content-type']));
  context.body = answer.body;
});
app.silent = true;

const server = app.listen({ port: 0, host: '127.0.0.1', backlog: 4096 }, () => {
  process.send?.({ port: (server.address() as AddressInfo).port });
});
server.keepAliveTimeout = 300_000;
server.requestTimeout = 0;
process.on('disconnect', () => process.exit(0));
process.on('SIGTERM', () => process.exit(0));
