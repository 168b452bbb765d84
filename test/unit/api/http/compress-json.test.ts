import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { it } from 'node:test';
import Koa from 'koa';
import { writeObjects } from '../../../../api/http/compress-json.ts';
import type { State } from '../../../../api/state.ts';
import { longKeepAliveMs } from '../../../support/long-keep-alive.ts';

it('a large object is announced to the bounds of connections before it is sent, whatever its path, and a small one is not', async () => {
  const expected: number[] = [];
  const app = new Koa<State>();
  app.use(writeObjects({ connections: { expect: (bytes) => expected.push(bytes) } }));
  app.use((ctx) => {
    ctx.body = { object: 'job', result: 'x'.repeat(Number(ctx.query.size)) };
  });
  const server = createServer({ keepAliveTimeout: longKeepAliveMs }, app.callback()).listen(0, '127.0.0.1');
  await once(server, 'listening');
  try {
    const ask = async (path: string): Promise<number> => {
      const answer = await fetch(`http://127.0.0.1:${(server.address() as AddressInfo).port}${path}`, {
        headers: { 'accept-encoding': 'identity' },
      });
      assert.match(String(answer.headers.get('content-type')), /^application\/json/);
      return (await answer.text()).length;
    };
    await ask('/v1/jobs/1?size=1000');
    assert.deepEqual(expected, []);
    const lengths = [await ask('/v1/jobs/1?size=2000000'), await ask('/console/jobs/1?size=3000000')];
    assert.deepEqual(expected, lengths);
  } finally {
    server.closeAllConnections();
    server.close();
  }
});
