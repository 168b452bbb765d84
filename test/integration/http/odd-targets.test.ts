import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect } from 'node:net';
import { text } from 'node:stream/consumers';
import { after, before, describe, it } from 'node:test';
import { eventually } from '../../support/eventually.ts';
import { type ApiProcess, TestGateway } from '../../support/gateway.ts';

describe('request targets that are not paths', () => {
  let gateway: TestGateway;
  before(async () => {
    gateway = await TestGateway.start({ workers: 0 });
  });
  after(() => gateway?.stop());

  /** The answer to a request as it is written, and whether the connection was closed behind it. */
  async function ask(line: string, headers = ''): Promise<{ status: number; head: string; body: string }> {
    const { hostname, port } = new URL(gateway.url);
    const socket = connect(Number(port), hostname);
    await once(socket, 'connect');
    socket.write(`${line} HTTP/1.1\r\nhost: ${hostname}:${port}\r\n${headers}\r\n`);
    const answer = await text(socket);
    const [head = '', body = ''] = answer.split('\r\n\r\n');
    return { status: Number(head.split(' ')[1]), head, body };
  }

  const expected = 400;
  for (const line of [
    ...['CONNECT example.com:443', 'GET http://', 'GET http://[::1', 'GET http://[::bad/v1/models', 'POST x://y'],
    ...['OPTIONS *', 'CONNECT models:443'],
  ]) {
    it(`the target ${line} gets a 400 in the error shape with a logged id, and the connection closes`, async () => {
      for (const headers of ['', 'origin: https://example.com\r\n', 'anthropic-version: 2023-06-01\r\n']) {
        const { status, head, body } = await ask(line, headers);
        assert.equal(status, expected, head);
        assert.match(head, /^connection: close$/im);
        const id = /^x-request-id: req_(\w+)$/im.exec(head)?.[1];
        assert.equal(JSON.parse(body).error.type, 'invalid_request_error');
        const { output } = gateway.apis[0] as ApiProcess;
        await eventually(() => assert.match(output(), new RegExp(`"job":"${id}".*"status":${expected}`)));
      }
    });
  }

  it('a request with two Host headers gets a 400 in the error shape, and the connection closes', async () => {
    for (const line of ['GET /v1/models', 'GET /healthz', 'POST /v1/chat/completions']) {
      const { status, head, body } = await ask(line, 'HOST: other.example\r\n');
      assert.deepEqual([status, JSON.parse(body).error.message], [400, 'The request has more than one Host header.']);
      assert.match(head, /^connection: close$/im);
    }
  });

  it('a target in absolute form is served as its path', async () => {
    const { status, body } = await ask('GET http://anything.example/healthz', 'connection: close\r\n');
    assert.deepEqual([status, JSON.parse(body).status ?? 'ok'], [200, 'ok']);
    assert.equal((await ask('GET http://anything.example/v1/models', 'connection: close\r\n')).status, 401);
  });
});
