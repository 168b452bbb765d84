import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { test } from 'node:test';
import { eventually } from '../../support/eventually.ts';
import { LoadBalancer } from '../../support/faults/load-balancer.ts';

test("the tests' load balancer takes an api for down after one no, or after three checks in a row without an answer", async (t) => {
  const answers = [undefined, undefined, 200, undefined, undefined, undefined, 200, 503, 200];
  /** What a request got before each of these was given. */
  const statuses: number[] = [];
  const server = createServer(async (incoming, outgoing) => {
    if (incoming.url !== '/readyz' || statuses.length === answers.length) {
      outgoing.end();
      return;
    }
    const { status } = await fetch(balancer.url);
    const answer = answers[statuses.length];
    statuses.push(status);
    if (answer === undefined) incoming.socket.destroy();
    else outgoing.writeHead(answer).end();
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const balancer = await LoadBalancer.start(10);
  t.after(async () => {
    await balancer.close();
    server.closeAllConnections();
    server.close();
  });
  balancer.add(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  await eventually(() => assert.equal(statuses.length, answers.length));
  assert.deepEqual(statuses, [200, 200, 200, 200, 200, 200, 503, 200, 503]);
});
