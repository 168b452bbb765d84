import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect } from 'node:net';
import { text } from 'node:stream/consumers';
import { after, before, describe, it } from 'node:test';
import { eventually } from '../../support/eventually.ts';
import { type ApiProcess, TestGateway } from '../../support/gateway.ts';

describe('requests refused by the HTTP parser', () => {
  let gateway: TestGateway;
  before(async () => {
    gateway = await TestGateway.start({ workers: 0 });
  });
  after(() => gateway?.stop());

  /** The whole of what comes back on a connection for these bytes. */
  async function send(bytes: string): Promise<string> {
    const { hostname, port } = new URL(gateway.url);
    const socket = connect(Number(port), hostname);
    await once(socket, 'connect');
    socket.write(bytes);
    return await text(socket);
  }

  const cases: Readonly<Record<string, readonly [status: number, code: string, request: string]>> = {
    'bytes that are not HTTP': [400, 'invalid_request_error', '\u0016\u0003\u0001 hello\r\n\r\n'],
    'a header without a name': [400, 'invalid_request_error', 'GET /healthz HTTP/1.1\r\nhost: x\r\n: y\r\n\r\n'],
    'two content lengths': [
      400,
      'invalid_request_error',
      'POST /v1/messages HTTP/1.1\r\nhost: x\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nab',
    ],
    'headers that are too large': [
      431,
      'headers_too_large',
      `GET /healthz HTTP/1.1\r\nhost: x\r\nx-large: ${'a'.repeat(64 * 1024)}\r\n\r\n`,
    ],
    'no Host': [400, 'invalid_request_error', 'GET /v1/models HTTP/1.1\r\n\r\n'],
    'an unknown expectation': [
      417,
      'expectation_failed',
      'POST /v1/chat/completions HTTP/1.1\r\nhost: 127.0.0.1\r\nexpect: a miracle\r\ncontent-length: 2\r\n\r\n{}',
    ],
  };
  for (const [name, [status, code, bytes]] of Object.entries(cases)) {
    it(`a request with ${name} gets ${status} in the error shape with an id, a log line and a count`, async () => {
      const answer = await send(bytes);
      const [head = '', body = ''] = answer.split('\r\n\r\n');
      assert.match(head, new RegExp(`^HTTP/1\\.1 ${status} `));
      assert.match(head, /^connection: close$/im);
      const { error } = JSON.parse(body) as { error: Record<string, unknown> };
      assert.deepEqual([error.type, error.code], ['invalid_request_error', code]);
      const id = /^x-request-id: req_(\w+)$/im.exec(head)?.[1];
      assert.ok(id !== undefined, head);
      const { output } = gateway.apis[0] as ApiProcess;
      await eventually(() =>
        assert.match(
          output(),
          new RegExp(`"job":"${id}".*"status":${status}.*"error":"${code}"|"job":"${id}".*"error":"${code}".*`),
        ),
      );
      const page = await (await fetch(`${gateway.url}/metrics`)).text();
      assert.match(
        page,
        new RegExp(`^sluice_requests_total\\{[^}]*endpoint="other",status="${status}"[^}]*\\} [1-9]`, 'm'),
      );
    });
  }

  it('an unknown expectation on /v1/messages gets 417 in the Anthropic shape', async () => {
    const answer = await send(
      'POST /v1/messages HTTP/1.1\r\nhost: 127.0.0.1\r\nexpect: x\r\ncontent-length: 2\r\n\r\n{}',
    );
    assert.match(answer, /^HTTP\/1\.1 417 .*\r\n\r\n\{"type":"error","error":\{"type":"invalid_request_error"/s);
  });

  it('invalid bytes after an answered request get an answer of their own', async () => {
    const answer = await send('GET /healthz HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\nnonsense\r\n\r\n');
    assert.equal(answer.match(/^HTTP\/1\.1 \d+/gm)?.length ?? 0, answer.includes('HTTP/1.1 200') ? 2 : 1, answer);
  });
});
