import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { describe, it } from 'node:test';
import { acceptSocket, routeUpgrades } from '../../../../api/http/websocket-upgrades.ts';
import type { Context } from '../../../../api/state.ts';

const handshake = [
  ...['GET / HTTP/1.1', 'Host: a', 'Upgrade: websocket', 'Connection: Upgrade', 'Sec-WebSocket-Version: 13'],
  ...['Sec-WebSocket-Key: MDEyMzQ1Njc4OWFiY2RlZg==', '', ''],
].join('\r\n');

/** A client's frame with one character, masked with zeros. */
const frame = (opcode: number): Buffer => Buffer.from([0x80 | opcode, 0x81, 0, 0, 0, 0, 0x61]);
const [text, ping] = [frame(1), frame(9)];
const limits = { maxPayload: 1024 };

describe('acceptSocket', () => {
  it('a socket takes one message in each pass of the event loop, however many have come in one packet', async () => {
    let passes = 0;
    let counting = setImmediate(function count() {
      passes++;
      counting = setImmediate(count);
    });
    const taken: number[] = [];
    const server = createServer();
    const accepted = new Promise<void>((resolve) => {
      routeUpgrades(server, (req, res: ServerResponse) => {
        const ctx = { req, res, state: { headers: {} } } as unknown as Context;
        const { webSocket } = acceptSocket(ctx, limits);
        const take = (): void => {
          taken.push(passes);
          if (taken.length === 2000) resolve();
        };
        webSocket.on('message', take).on('ping', take);
      });
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const client = connect((server.address() as AddressInfo).port, '127.0.0.1');
    client.resume();
    client.write(Buffer.concat([Buffer.from(handshake), ...Array.from({ length: 1000 }, () => [text, ping]).flat()]));
    await accepted;
    assert.equal(new Set(taken).size, taken.length);
    clearImmediate(counting);
    client.destroy();
    server.close();
    await once(server, 'close');
  });
});
