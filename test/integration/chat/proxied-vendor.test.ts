import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { after, before, beforeEach, describe, test } from 'node:test';
import { createServer as createTlsServer } from 'node:tls';
import { eventually } from '../../support/eventually.ts';
import { TestGateway } from '../../support/gateway.ts';
import { TestAuthority } from '../../support/redis-kinds/certificates.ts';

const model = 'mine/sandbox-chat';
const messages = [{ role: 'user' as const, content: 'Reply with exactly: through the proxy' }];

const portOf = (server: { address(): unknown }): number => (server.address() as AddressInfo).port;

/** Passes on what each of two connections says; neither outlives the other. */
function joined(one: Socket, other: Socket): void {
  one.pipe(other).pipe(one);
  for (const [end, far] of [
    [one, other],
    [other, one],
  ] as const) {
    end.on('error', () => undefined).on('close', () => far.destroy());
  }
}

describe('a vendor that is reached through a proxy only', () => {
  let authority: TestAuthority;
  let gateway: TestGateway;
  let vendor: ReturnType<typeof createTlsServer>;
  let proxy: Server;
  /** What the proxy is asked for, and with which login. */
  const asked: [target: string | undefined, login: string | undefined][] = [];
  const tunnels = new Set<Socket>();
  let answer: 'open' | 'refuse' | 'silence' = 'open';

  before(async () => {
    authority = await TestAuthority.make();
    const { cert, key } = await authority.certify('vendor.test', ['DNS:vendor.test']);
    const [certPem, keyPem] = await Promise.all([readFile(cert), readFile(key)]);
    vendor = createTlsServer({ cert: certPem, key: keyPem }, (socket) => {
      const sandbox = connect(Number(new URL(gateway.sandbox.url).port), '127.0.0.1');
      joined(socket, sandbox);
    }).listen(0, '127.0.0.1');
    proxy = createServer().listen(0, '127.0.0.1');
    await Promise.all([once(vendor, 'listening'), once(proxy, 'listening')]);
    proxy.on('connect', ({ url, headers }, client: Socket) => {
      asked.push([url, headers['proxy-authorization']]);
      tunnels.add(client);
      client.on('error', () => client.destroy()).on('close', () => tunnels.delete(client));
      // Its own end is not sent before it has seen the other's.
      if (answer === 'silence') return void client.on('end', () => client.destroy()).resume();
      if (answer === 'refuse') return void client.end('HTTP/1.1 403 Forbidden\r\n\r\n');
      const upstream = connect(portOf(vendor), '127.0.0.1', () => client.write('HTTP/1.1 200 OK\r\n\r\n'));
      joined(client, upstream);
    });
    const file = { vendors: { mine: { base_url: 'https://vendor.test/v1', api_key: 'a-key', open: true } } };
    gateway = await TestGateway.start({
      configuration: { ...file, routing: { attempts: 1 } },
      settings: {
        HTTPS_PROXY: `http://user:p%40ss@127.0.0.1:${portOf(proxy)}`,
        NODE_EXTRA_CA_CERTS: authority.ca,
      },
    });
  });
  after(async () => {
    await gateway.stop();
    for (const tunnel of tunnels) tunnel.destroy();
    proxy.close();
    vendor.close();
    await authority.remove();
  });
  beforeEach(() => {
    asked.length = 0;
    answer = 'open';
  });

  /** The next request needs a connection of its own. */
  async function closeTunnels(): Promise<void> {
    for (const tunnel of tunnels) tunnel.destroy();
    await eventually(() => assert.equal(tunnels.size, 0));
  }

  test('a worker with HTTPS_PROXY calls a vendor whose name only the proxy knows, held and streamed, with the login of the proxy', async () => {
    const client = gateway.client();
    const held = await client.chat.completions.create({ model, messages });
    assert.equal(held.choices[0]?.message.content, 'through the proxy');
    const streamed = await client.chat.completions.stream({ model, messages }).finalContent();
    assert.equal(streamed, 'through the proxy');
    const login = `Basic ${Buffer.from('user:p@ss').toString('base64')}`;
    assert.ok(asked.length >= 1);
    for (const each of asked) assert.deepEqual(each, ['vendor.test:443', login]);
  });

  test('the sandbox, which is on this machine, is called past the proxy', async () => {
    await gateway.client().chat.completions.create({ model: 'sandbox-chat', messages });
    assert.deepEqual(asked, []);
  });

  test('a proxy that refuses a vendor makes it one that cannot be reached, and the log says why', async () => {
    await closeTunnels();
    answer = 'refuse';
    await assert.rejects(gateway.client().chat.completions.create({ model, messages }), { status: 503 });
    assert.equal(asked.length, 1);
    await eventually(() => assert.match(gateway.workers[0]?.output() ?? '', /the proxy answered 403/));
  });

  test('a request that is cancelled while the proxy is silent gives up its connection to the proxy at once', async () => {
    await closeTunnels();
    answer = 'silence';
    const leaving = new AbortController();
    const left = gateway
      .client()
      .chat.completions.create({ model, messages, stream: true }, { signal: leaving.signal });
    await eventually(() => assert.equal(tunnels.size, 1));
    leaving.abort();
    await assert.rejects(left);
    await eventually(() => assert.equal(tunnels.size, 0), 5000);
  });
});
