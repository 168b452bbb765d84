import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type RequestListener, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, describe, it } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { type ConnectionLimits, Connections } from '../../../../api/bounds/connections.ts';
import { createLogger } from '../../../../shared/runtime/log.ts';
import { eventually } from '../../../support/eventually.ts';
import { RawRequest } from '../../../support/raw-request.ts';

/** More than the system keeps for a client that does not read. */
const body = Buffer.alloc(24 * 1024 * 1024, 'x');
const closers: (() => void)[] = [];
afterEach(() => {
  for (const close of closers.splice(0)) close();
});

async function start(limits: Partial<ConnectionLimits>, handle?: RequestListener) {
  const cut: string[] = [];
  const usual: ConnectionLimits = {
    ...{ maxConnections: 1000, addressConnections: 1000, unreadMs: 400, unsentBytes: 2 ** 40, isShared: () => true },
  };
  const connections = new Connections({ ...usual, ...limits }, createLogger('silent', 'test').log, (why) =>
    cut.push(why),
  );
  const server: Server = createServer(handle ?? ((_request, response) => response.end(body)));
  connections.watch(server);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  closers.push(() => {
    connections.close();
    server.closeAllConnections();
    server.close();
  });
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const ask = async (from?: string, headers: Record<string, string> = {}): Promise<RawRequest> => {
    const request = await RawRequest.open(url, { method: 'GET', headers, ...(from === undefined ? {} : { from }) });
    closers.push(() => request.socket.destroy());
    return request;
  };
  return { url, connections, cut, ask };
}

describe('Connections', () => {
  it('Connections closes a connection whose client reads nothing of an answer that is completely sent', {
    timeout: 20_000,
  }, async () => {
    const { connections, cut, ask } = await start({});
    const { socket } = await ask();
    socket.pause();
    await eventually(() => assert.deepEqual(cut, ['unread']));
    await eventually(() => assert.equal(connections.size, 0));
    connections.sweep();
    assert.equal(connections.unsent, 0);
  });

  it('Connections keeps a connection whose client reads slowly, and one to which nothing is sent for long', {
    timeout: 60_000,
  }, async () => {
    const { cut, ask } = await start({ unreadMs: 4000 }, (request, response) => {
      if (request.url === '/v1/chat/completions') response.end(body);
    });
    const slow = await ask();
    slow.socket.pause();
    // The system tells the sender of room by parts of its buffer, not of each byte.
    for (let took = 0; took < 5 * 1024 * 1024; ) {
      await delay(60);
      slow.socket.resume();
      took += String((await once(slow.socket, 'data'))[0]).length;
      slow.socket.pause();
    }
    assert.deepEqual(cut, []);
  });

  it('Connections closes those with the most unsent bytes when all clients together leave too much unread', {
    timeout: 20_000,
  }, async () => {
    const { connections, cut, ask } = await start({ unreadMs: 60_000, unsentBytes: 40 * 1024 * 1024 });
    const open = await Promise.all([ask(), ask(), ask()]);
    for (const { socket } of open) socket.pause();
    await eventually(() => {
      // However often it is looked at before those that were cut are closed.
      for (let count = 0; count < 3; count++) connections.sweep();
      assert.deepEqual(cut, ['unsent', 'unsent']);
    });
    assert.ok(connections.unsent <= 40 * 1024 * 1024, `${connections.unsent}`);
    await eventually(() => assert.equal(connections.size, 1));
  });

  it('Connections makes room at once for a large answer that is announced', { timeout: 20_000 }, async () => {
    const { connections, cut, ask } = await start({ unreadMs: 60_000, unsentBytes: 40 * 1024 * 1024 });
    const { socket } = await ask();
    socket.pause();
    await eventually(() => {
      connections.sweep();
      assert.ok(connections.unsent > 0, 'all is sent');
    });
    connections.expect(30 * 1024 * 1024);
    assert.deepEqual(cut, ['unsent']);
  });

  it('Connections makes room by clients that take nothing before one that reads, however much that has yet to take', {
    timeout: 30_000,
  }, async () => {
    const large = Buffer.alloc(4 * body.length, 'x');
    const limits = { unreadMs: 60_000, unsentBytes: large.length + body.length / 2 };
    const { connections, cut, ask } = await start(limits, (request, response) =>
      response.end(request.headers['x-large'] === undefined ? body : large),
    );
    const stalled = await ask();
    stalled.socket.pause();
    await eventually(() => assert.ok(connections.unsent > 0, 'all is sent'));
    // Until sweeps have found it as it was.
    await delay(1500);
    const reader = await ask(undefined, { 'x-large': 'yes' });
    for (let part = 0; cut.length === 0 && part < 100; part++) {
      await once(reader.socket, 'data');
      connections.sweep();
    }
    assert.deepEqual(cut, ['unsent']);
    await eventually(() => assert.equal(connections.size, 1));
    await once(reader.socket, 'data');
    assert.equal(reader.socket.destroyed, false);
  });

  it('Connections lets less of an answer into memory at a time, the more is unsent, and never nothing', async () => {
    const { connections } = await start({ unsentBytes: 256 * 1024 * 1024 });
    const sizes = [connections.pieceBytes];
    for (let count = 0; count < 3; count++) {
      connections.expect(80 * 1024 * 1024);
      sizes.push(connections.pieceBytes);
    }
    assert.deepEqual(sizes, [4096 * 1024, 2816 * 1024, 1536 * 1024, 256 * 1024]);
    connections.expect(15 * 1024 * 1024);
    assert.equal(connections.pieceBytes, 64 * 1024);
    connections.taken(255 * 1024 * 1024);
    assert.equal(connections.pieceBytes, 4096 * 1024);
  });

  it('Connections closes a connection that pipelines more requests than any client sends', {
    timeout: 20_000,
  }, async () => {
    const { cut, ask } = await start({}, () => undefined);
    const request = await ask();
    await request.send('GET / HTTP/1.1\r\nhost: a\r\n\r\n'.repeat(40));
    await request.closed;
    assert.ok(cut.includes('pipelined'));
  });

  it('Connections limits connections in all and per address, but not per address that many clients share', {
    timeout: 20_000,
  }, async () => {
    const limits = { addressConnections: 3, maxConnections: 8, isShared: (address: string) => address === '127.0.0.1' };
    const { connections, cut, ask } = await start(limits, () => undefined);
    for (let count = 0; count < 5; count++) await ask('127.0.0.2');
    await eventually(() => assert.deepEqual(cut, ['address', 'address']));
    assert.equal(connections.size, 3);
    for (let count = 0; count < 5; count++) await ask('127.0.0.1');
    await eventually(() => assert.equal(connections.size, 8));
    await (await ask('127.0.0.1')).closed;
    assert.equal(cut.at(-1), 'full');
  });
});
