import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { after, before, beforeEach, describe, it } from 'node:test';
import { ApiError } from '../../../shared/errors.ts';
import { createDownloader, type Downloader } from '../../../workers/http/download.ts';
import { isPublicAddress } from '../../../workers/http/public-address.ts';
import type { ResolveHost } from '../../../workers/http/resolve-host.ts';

// Longer than a test may take: only what says so itself ends by silence.
const wait = { signal: new AbortController().signal, silenceMs: 600_000 };

async function fetchAll(download: Downloader, link: string, options = wait): Promise<{ text: string; type: unknown }> {
  const { content, type } = await download(link, options);
  const chunks: Buffer[] = [];
  for await (const chunk of content) chunks.push(chunk);
  return { text: Buffer.concat(chunks).toString(), type };
}

/** Why a link was not fetched: the cause that the operator reads. The caller's message says nothing of it. */
async function whyNot(work: Promise<unknown>): Promise<string> {
  const error = await work.then(
    () => assert.fail('it was fetched'),
    (thrown: unknown) => thrown,
  );
  assert(error instanceof ApiError);
  assert.equal(error.code, 'server_error');
  assert.equal(error.message, "A file of the model's vendor could not be fetched.");
  return (error.cause as Error).message;
}

const refusedAddress = 'the link was not followed: its address is not public';

describe('isPublicAddress', () => {
  const closed = [
    '0.0.0.0',
    '10.1.2.3',
    '100.64.0.1',
    '127.0.0.1',
    '127.255.255.254',
    '169.254.169.254',
    '172.16.0.1',
    '172.31.255.255',
    '192.0.0.8',
    '192.168.1.1',
    '198.18.0.1',
    '203.0.113.5',
    '224.0.0.1',
    '255.255.255.255',
    '::',
    '::1',
    '::ffff:127.0.0.1',
    '::ffff:8.8.8.8',
    '64:ff9b::a9fe:a9fe',
    'fe80::1',
    'fe80::1%eth0',
    'fc00::1',
    'fd00:ec2::254',
    'ff02::1',
    '2001:db8::1',
    '2001::1',
    '2002:7f00:1::',
    'localhost',
    '',
  ];
  for (const address of closed)
    it(`isPublicAddress rejects ${address || 'empty'}`, () => assert.equal(isPublicAddress(address), false));

  for (const address of [
    '8.8.8.8',
    '172.15.0.1',
    '172.32.0.1',
    '100.63.0.1',
    '1.1.1.1',
    '2606:4700::1111',
    '2a00::1',
  ]) {
    it(`isPublicAddress accepts ${address}`, () => assert.equal(isPublicAddress(address), true));
  }
});

describe('createDownloader', () => {
  let server: Server;
  let origin: string;
  let other: Server;
  let otherOrigin: string;
  let answer: (request: IncomingMessage, response: ServerResponse) => void;
  let asked: string[] = [];
  let otherAsked = 0;

  const listen = async (listener: Server): Promise<string> => {
    listener.listen(0, '127.0.0.1');
    await once(listener, 'listening');
    return `http://127.0.0.1:${(listener.address() as AddressInfo).port}`;
  };
  /** Sockets of the vendor's server. */
  const sockets = new Set<Socket>();
  const resetConnections = (): void => {
    for (const socket of sockets) socket.resetAndDestroy();
  };
  const close = async (listener: Server): Promise<void> => {
    listener.close();
    listener.closeAllConnections();
    await once(listener, 'close');
  };

  before(async () => {
    server = createServer((request, response) => {
      asked.push(request.url ?? '');
      answer(request, response);
    });
    server.on('connection', (socket) => {
      sockets.add(socket);
      socket.once('close', () => sockets.delete(socket));
    });
    other = createServer((_request, response) => {
      otherAsked += 1;
      response.end('secret');
    });
    origin = await listen(server);
    otherOrigin = await listen(other);
  });
  after(async () => {
    await close(server);
    await close(other);
  });
  beforeEach(() => {
    asked = [];
    otherAsked = 0;
    answer = (_request, response) => response.writeHead(200, { 'content-type': 'Image/PNG; x=1' }).end('picture');
  });

  const trusting = (more: object = {}): Downloader => createDownloader({ trustedOrigin: origin, ...more });
  const trustingNone = (more: object = {}): Downloader =>
    createDownloader({ trustedOrigin: 'https://vendor.example', ...more });

  it("the downloader fetches from the vendor's own origin, wherever that is", async () => {
    assert.deepEqual(await fetchAll(trusting(), `${origin}/a.png`), { text: 'picture', type: 'image/png' });
  });

  it('the downloader does not reach a private address, in whatever notation', async () => {
    const { port } = new URL(otherOrigin);
    const hosts = ['127.0.0.1', '0x7f.1', '2130706433', '017700000001', '[::1]', '[::ffff:127.0.0.1]', '0'];
    for (const host of hosts) {
      assert.equal(await whyNot(trusting()(`http://${host}:${port}/`, wait)), refusedAddress, host);
    }
    assert.equal(otherAsked, 0);
  });

  it('the downloader trusts an origin, not its host: another port is closed', async () => {
    assert.equal(await whyNot(trusting()(otherOrigin, wait)), refusedAddress);
    assert.equal(otherAsked, 0);
  });

  it('the downloader does not reach a name that resolves to a private address, alone or among public ones', async () => {
    const { port } = new URL(otherOrigin);
    const privates = [['127.0.0.1'], ['8.8.8.8', '127.0.0.1'], ['169.254.169.254'], ['fd00::1']];
    for (const addresses of privates) {
      const resolveHost: ResolveHost = (_host, callback) =>
        callback(
          null,
          addresses.map((address) => ({ address, family: address.includes(':') ? 6 : 4 })),
        );
      const download = trustingNone({ resolveHost });
      assert.equal(await whyNot(download(`http://images.example:${port}/`, wait)), refusedAddress, String(addresses));
    }
    assert.equal(otherAsked, 0);
  });

  it('the downloader resolves a name once, and connects to the address it checked', async () => {
    const { port } = new URL(origin);
    let lookups = 0;
    const resolveHost: ResolveHost = (host, callback) => {
      lookups += 1;
      assert.equal(host, 'images.example');
      callback(null, [{ address: '127.0.0.1', family: 4 }]);
    };
    const download = createDownloader({ trustedOrigin: `http://images.example:${port}`, resolveHost });
    assert.equal((await fetchAll(download, `http://images.example:${port}/b`)).text, 'picture');
    assert.equal(lookups, 1);
  });

  it('the downloader follows redirects, and checks each', async () => {
    answer = ({ url }, response) => {
      if (url === '/1') response.writeHead(302, { location: '/2' }).end('ignored');
      else if (url === '/2') response.writeHead(307, { location: `${origin}/3` }).end();
      else if (url === '/out') response.writeHead(302, { location: otherOrigin }).end();
      else if (url === '/metadata') response.writeHead(301, { location: 'http://169.254.169.254/latest' }).end();
      else if (url === '/file') response.writeHead(302, { location: 'file:///etc/passwd' }).end();
      else response.end('found');
    };
    assert.equal((await fetchAll(trusting(), `${origin}/1`)).text, 'found');
    assert.deepEqual(asked, ['/1', '/2', '/3']);
    assert.equal(await whyNot(trusting()(`${origin}/out`, wait)), refusedAddress);
    assert.equal(await whyNot(trusting()(`${origin}/metadata`, wait)), refusedAddress);
    assert.match(await whyNot(trusting()(`${origin}/file`, wait)), /neither https nor http/);
    assert.equal(otherAsked, 0);
  });

  it('the downloader gives up after three redirects', async () => {
    answer = (_request, response) => response.writeHead(302, { location: '/again' }).end();
    assert.match(await whyNot(trusting()(origin, wait)), /redirected too often/);
    assert.equal(asked.length, 4);
  });

  it('the downloader rejects anything that is no link', async () => {
    const download = trustingNone();
    for (const link of [
      '',
      'otter.png',
      'ftp://example.com/a',
      'data:image/png;base64,AAAA',
      'https://a:b@example.com/',
    ]) {
      assert.match(await whyNot(download(link, wait)), /was not followed/, link);
    }
  });

  it('the downloader rejects a file that is too large, announced or not', async () => {
    const download = trusting({ longest: 1000 });
    answer = (_request, response) => response.writeHead(200, { 'content-length': '1001' }).end('x'.repeat(1001));
    assert.match(await whyNot(download(origin, wait)), /more than 1000 bytes/);
    answer = (_request, response) => {
      response.write('x'.repeat(600));
      response.end('x'.repeat(600));
    };
    assert.match(await whyNot(fetchAll(download, origin)), /more than 1000 bytes/);
    answer = (_request, response) => response.end('x'.repeat(1000));
    assert.equal((await fetchAll(download, origin)).text.length, 1000);
  });

  it('the downloader fails for every status except 200, and when the connection breaks off', async () => {
    for (const status of [204, 304, 404, 500]) {
      answer = (_request, response) => response.writeHead(status).end();
      assert.match(await whyNot(trusting()(origin, wait)), new RegExp(`answered ${status}`));
    }
    answer = (_request, response) => {
      response.writeHead(200, { 'content-length': '1000' });
      response.write('half');
      response.socket?.end();
    };
    assert.match(await whyNot(fetchAll(trusting(), origin)), /could not be followed \(\w+\)/);
  });

  it('the downloader fails when the connection is reset in a file of unknown length', async () => {
    answer = (_request, response) => {
      response.useChunkedEncodingByDefault = false;
      response.writeHead(200, { connection: 'close' });
      response.write('half');
    };
    const { content } = await trusting()(origin, wait);
    const read = (async () => {
      for await (const _chunk of content) resetConnections();
    })();
    assert.match(await whyNot(read), /could not be followed \(UND_ERR_SOCKET\)/);
  });

  it('the downloader ends with its signal, before and inside the file, and closes the connection', async () => {
    const reason = new ApiError('timeout', 'The deadline has passed.');
    assert.equal(
      await trusting()(origin, { ...wait, signal: AbortSignal.abort(reason) }).catch((error) => error),
      reason,
    );
    const controller = new AbortController();
    let left: Promise<unknown> | undefined;
    answer = (_request, response) => {
      left = once(response, 'close');
      response.write('half');
    };
    const { content } = await trusting()(origin, { ...wait, signal: controller.signal });
    const read = (async () => {
      for await (const _chunk of content) controller.abort(reason);
    })();
    await assert.rejects(read, reason);
    await left;
  });

  it('the downloader takes no file in a compressed form: it would be stored as it came', async () => {
    answer = (_request, response) => response.writeHead(200, { 'content-encoding': 'gzip' }).end('packed');
    assert.match(await whyNot(fetchAll(trusting(), origin)), /compressed form/);
  });

  it('the downloader fails when the server is silent for too long', async () => {
    answer = (_request, response) => void response.write('half');
    assert.match(await whyNot(fetchAll(trusting(), origin, { ...wait, silenceMs: 300 })), /UND_ERR_BODY_TIMEOUT/);
  });

  it('hints (103) are no sign of a file: a server that sends nothing else is silent', { timeout: 60_000 }, async () => {
    const hint = 'HTTP/1.1 103 Early Hints\r\nlink: </style.css>\r\n\r\n';
    answer = (_request, { socket }) => {
      const timer = setInterval(() => socket?.write(hint), 50);
      socket?.once('close', () => clearInterval(timer));
    };
    assert.match(await whyNot(fetchAll(trusting(), origin, { ...wait, silenceMs: 1000 })), /it took too long/);
    answer = (_request, response) => {
      response.socket?.write(hint.repeat(3));
      response.end('picture');
    };
    assert.equal((await fetchAll(trusting(), origin)).text, 'picture');
  });

  it('the downloader closes the connection when its content is discarded unread', async () => {
    let left: Promise<unknown> | undefined;
    answer = (_request, response) => {
      left = once(response, 'close');
      response.write('half');
    };
    const { content } = await trusting()(origin, wait);
    content.destroy();
    await left;
  });
});
