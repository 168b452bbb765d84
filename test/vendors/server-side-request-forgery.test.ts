import assert from 'node:assert/strict';
import { channel } from 'node:diagnostics_channel';
import type { LookupAddress } from 'node:dns';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { networkInterfaces } from 'node:os';
import { after, before, beforeEach, describe, it } from 'node:test';
import { Agent, fetch } from 'undici';
import { ApiError } from '../../shared/errors.ts';
import {
  createCallerDownloader,
  createDownloader,
  type Downloader,
  type DownloaderOptions,
} from '../../workers/http/download.ts';
import type { ResolveHost } from '../../workers/http/resolve-host.ts';

const wait = { signal: new AbortController().signal, silenceMs: 60_000 };

const notPublic = 'its address is not public';
const redirectedTooOften = 'it is redirected too often';
const noUrl = 'it is no URL';
const credentials = 'it holds credentials';
const scheme = 'it is neither https nor http';

/** An address of no registry's special list that nobody has: what is sent there arrives nowhere. */
const publicAddress = '3ffe::1';

const hasIpv6 = Object.values(networkInterfaces()).some((list) => list?.some(({ address }) => address === '::1'));

/** What a link is refused for, and how it would get through. */
interface Case {
  readonly name: string;
  /** `PORT` is the canary's; `HOP` the origin of a trusted server that redirects as its query says. */
  readonly link: string;
  readonly why: string;
  /** What names stand for, each lookup's answer in turn and the last for ever; other names do not exist. */
  readonly names?: Readonly<Record<string, readonly (readonly string[])[]>>;
  /** Whether a client without a guard gets to the canary by it. */
  readonly bites?: boolean;
}

const hop = (to: string, status = 302): string => `HOP/?status=${status}&to=${encodeURIComponent(to)}`;

/** Hosts that are an address already. */
const literal = (name: string, host: string, bites = false): Case => ({
  name,
  link: `http://${host}:PORT/`,
  why: notPublic,
  bites,
});

/** A name that stands for addresses. */
const named = (name: string, addresses: readonly string[], bites = false, host = 'images.example'): Case => ({
  name,
  link: `http://${host}:PORT/`,
  names: { [host]: [addresses] },
  why: notPublic,
  bites,
});

const redirected = (name: string, link: string, more: Partial<Case> = {}): Case => ({
  name,
  link,
  why: notPublic,
  bites: true,
  ...more,
});

const loopbackForms: readonly Case[] = [
  literal('loopback', '127.0.0.1', true),
  literal('another address of the loopback network', '127.255.255.254', true),
  literal('loopback in one decimal number', '2130706433', true),
  literal('loopback in octal', '0177.0.0.1', true),
  literal('loopback in one octal number', '017700000001', true),
  literal('loopback in hexadecimal', '0x7f.0x0.0x0.0x1', true),
  literal('loopback in one hexadecimal number', '0x7F000001', true),
  literal('loopback in a mix of notations', '0x7f.0.01', true),
  literal('loopback shortened to two parts', '127.1', true),
  literal('loopback shortened to three parts', '127.0.1', true),
  literal('loopback with leading zeros', '127.000.000.001', true),
  literal('loopback with a trailing dot', '127.0.0.1.', true),
  literal('loopback in fullwidth digits', '１２７.０.０.１', true),
  literal('loopback in circled digits', '①②⑦.⓪.⓪.①', true),
  literal('loopback with ideographic full stops', '127。0。0。1', true),
  literal('loopback percent-encoded', '%31%32%37.0.0.1', true),
  literal('loopback with its dots percent-encoded', '127%2e0%2e0%2e1', true),
  literal('loopback with a soft hyphen in it', '127.0.0.\u00ad1', true),
  literal('the unspecified address', '0.0.0.0', true),
  literal('the unspecified address shortened', '0', true),
  literal('an address of this network', '0.1.2.3'),
];

const ipv4Networks: readonly Case[] = [
  literal('private 10/8', '10.0.0.1'),
  literal('private 10/8 in one decimal number', '167772161'),
  literal('private 172.16/12, its first', '172.16.0.1'),
  literal('private 172.16/12, its last', '172.31.255.254'),
  literal('private 192.168/16', '192.168.0.1'),
  literal("link-local: the clouds' metadata service", '169.254.169.254'),
  literal('the metadata service in one decimal number', '2852039166'),
  literal('the metadata service in octal', '0251.0376.0251.0376'),
  literal('the metadata service in hexadecimal', '0xA9FEA9FE'),
  literal('the metadata service of containers', '169.254.170.2'),
  literal("Alibaba's metadata service, carrier-grade NAT", '100.100.100.200'),
  literal('carrier-grade NAT, its last', '100.127.255.254'),
  literal('protocol assignments, where Oracle has metadata', '192.0.0.192'),
  literal("Azure's platform, which looks public", '168.63.129.16'),
  literal("Azure's platform in hexadecimal", '0xa83f8110'),
  literal("services inside of IBM's cloud", '161.26.0.10'),
  literal("services inside of IBM's cloud, their last", '166.11.255.254'),
  literal('benchmarking', '198.19.255.254'),
  literal('documentation', '203.0.113.1'),
  literal('6to4 relays', '192.88.99.1'),
  literal('multicast', '224.0.0.251'),
  literal('reserved', '240.0.0.1'),
  literal('broadcast', '255.255.255.255'),
];

const ipv6Forms: readonly Case[] = [
  literal('IPv6 loopback', '[::1]', hasIpv6),
  literal('IPv6 loopback in full', '[0000:0000:0000:0000:0000:0000:0000:0001]', hasIpv6),
  literal('IPv6 unspecified', '[::]', hasIpv6),
  literal('IPv4-mapped loopback', '[::ffff:127.0.0.1]', hasIpv6),
  literal('IPv4-mapped loopback in hexadecimal', '[::ffff:7f00:1]', hasIpv6),
  literal('IPv4-mapped metadata service', '[::ffff:a9fe:a9fe]'),
  literal('IPv4-compatible loopback', '[::127.0.0.1]'),
  literal('IPv4-translated loopback', '[::ffff:0:127.0.0.1]'),
  literal('6to4 of loopback', '[2002:7f00:1::]'),
  literal('6to4 of the metadata service', '[2002:a9fe:a9fe::1]'),
  literal("IPv4-mapped address of Azure's platform", '[::ffff:168.63.129.16]'),
  literal("6to4 of Azure's platform", '[2002:a83f:8110::1]'),
  literal("NAT64 of Azure's platform", '[64:ff9b::168.63.129.16]'),
  literal('NAT64 of loopback', '[64:ff9b::127.0.0.1]'),
  literal('local NAT64 of the metadata service', '[64:ff9b:1::a9fe:a9fe]'),
  literal('Teredo', '[2001:0:7f00:1::]'),
  literal('link-local', '[fe80::1]'),
  { ...literal('link-local with a zone', '[fe80::1%25lo]'), why: noUrl },
  { ...literal('loopback with a zone', '[::1%lo]'), why: noUrl },
  literal('site-local, as it once was', '[fec0::1]'),
  literal('unique local', '[fc00::1]'),
  literal("Amazon's metadata service", '[fd00:ec2::254]'),
  literal('IPv6 multicast', '[ff02::1]'),
  literal('discard only', '[100::1]'),
  literal('IPv6 benchmarking', '[2001:2::1]'),
  literal('ORCHID', '[2001:20::1]'),
  literal('IPv6 documentation', '[2001:db8::1]'),
  literal('newer IPv6 documentation', '[3fff::1]'),
  literal('segment routing', '[5f00::1]'),
];

const names: readonly Case[] = [
  named('a name of loopback', ['127.0.0.1'], true),
  named('a name of IPv6 loopback', ['::1'], hasIpv6),
  named('a name of the mapped loopback', ['::ffff:127.0.0.1'], hasIpv6),
  named('a name of the unspecified address', ['0.0.0.0'], true),
  named('a private address behind a public one', [publicAddress, '127.0.0.1'], true),
  named('a private address before a public one', ['127.0.0.1', publicAddress], true),
  named('localhost', ['127.0.0.1'], true, 'localhost'),
  named('localhost with a trailing dot', ['127.0.0.1'], true, 'localhost.'),
  { ...named('localhost in capitals', ['127.0.0.1'], true, 'localhost'), link: 'http://LOCALHOST:PORT/' },
  { ...named('localhost percent-encoded', ['127.0.0.1'], true, 'localhost'), link: 'http://%6cocalhost:PORT/' },
  { ...named('localhost in circled letters', ['127.0.0.1'], true, 'localhost'), link: 'http://ⓛⓞⓒⓐⓛⓗⓞⓢⓣ:PORT/' },
  named('a name below localhost', ['127.0.0.1'], true, 'images.localhost'),
  named('a name that holds its address', ['127.0.0.1'], true, '127.0.0.1.nip.example'),
  named('a name in another script', ['127.0.0.1'], true, 'xn--bcher-kva.example'),
  named("Google's metadata service by its name", ['169.254.169.254'], false, 'metadata.google.internal'),
  named("Amazon's metadata service by a name", ['fd00:ec2::254']),
  named('a link-local address with its zone', ['fe80::1%lo']),
  named('a name of a private network', ['10.1.2.3']),
  named('what is no address', ['0x7f000001']),
  { ...named('TLS to a name of loopback', ['127.0.0.1']), link: 'https://images.example:PORT/' },
  { ...literal('TLS to loopback', ''), link: 'https://127.0.0.1:PORT/' },
];

const tricks: readonly Case[] = [
  { name: 'a public host as user name', link: 'http://images.example@127.0.0.1:PORT/', why: credentials },
  { name: 'a user name and a password', link: 'http://a:b@127.0.0.1:PORT/', why: credentials },
  { name: 'a host and a port as user name', link: 'http://images.example:80@127.0.0.1:PORT/', why: credentials },
  { name: 'an encoded slash before the real host', link: 'http://images.example%2F@127.0.0.1:PORT/', why: credentials },
  { name: 'an encoded at sign', link: 'http://images.example%40127.0.0.1:PORT/', why: noUrl },
  {
    name: 'a host before a fragment with an at sign',
    link: 'http://127.0.0.1:PORT#@images.example/',
    why: notPublic,
    bites: true,
  },
  {
    name: 'a host before a query with an at sign',
    link: 'http://127.0.0.1:PORT?@images.example/',
    why: notPublic,
    bites: true,
  },
  {
    name: 'a host before a backslash and an at sign',
    link: 'http://127.0.0.1:PORT\\@images.example/',
    why: notPublic,
    bites: true,
  },
  { name: 'backslashes for slashes', link: 'http:\\\\127.0.0.1:PORT\\', why: notPublic, bites: true },
  { name: 'no slashes at all', link: 'http:127.0.0.1:PORT', why: notPublic, bites: true },
  { name: 'too many slashes', link: 'http:////127.0.0.1:PORT/', why: notPublic, bites: true },
  { name: 'a tab and a line break inside', link: 'ht\ttp://127.0.\n0.1:PORT/', why: notPublic, bites: true },
  { name: 'spaces around it', link: '  http://127.0.0.1:PORT/  ', why: notPublic, bites: true },
  { name: 'a scheme in capitals', link: 'HTTP://127.0.0.1:PORT/', why: notPublic, bites: true },
  { name: 'a line break after the host', link: 'http://127.0.0.1:PORT/\r\nx-injected: 1', why: notPublic, bites: true },
  { name: 'a null byte in the host', link: 'http://images.example\0.127.0.0.1:PORT/', why: noUrl },
  { name: 'a port out of range', link: 'http://127.0.0.1:65536/', why: noUrl },
  { name: 'a number too large for an address', link: 'http://4294967297:PORT/', why: noUrl },
  { name: 'an address with too large a part', link: 'http://127.0.0.257:PORT/', why: noUrl },
  { name: 'no scheme', link: '//127.0.0.1:PORT/', why: noUrl },
  { name: 'a file', link: 'file:///etc/passwd', why: scheme },
  { name: 'ftp', link: 'ftp://127.0.0.1:PORT/', why: scheme },
  { name: 'gopher', link: 'gopher://127.0.0.1:PORT/_GET', why: scheme },
  { name: 'a web socket', link: 'ws://127.0.0.1:PORT/', why: scheme },
  { name: 'a data URL', link: 'data:text/plain,secret', why: scheme },
  { name: 'a script', link: 'javascript:fetch("http://127.0.0.1:PORT")', why: scheme },
];

const toCanary = 'http://127.0.0.1:PORT/';
const redirects: readonly Case[] = [
  ...[301, 302, 303, 307, 308].map((status) => redirected(`a redirect by ${status}`, hop(toCanary, status))),
  redirected('two redirects', hop(hop(toCanary))),
  redirected('three redirects', hop(hop(hop(toCanary)))),
  redirected('four redirects', hop(hop(hop(hop(toCanary)))), { why: redirectedTooOften }),
  redirected('a redirect that leaves out the scheme', hop('//127.0.0.1:PORT/')),
  redirected('a redirect by a path with two slashes and a backslash', hop('/\\127.0.0.1:PORT/')),
  redirected('a redirect to a decimal host', hop('http://2130706433:PORT/')),
  redirected('a redirect to IPv6 loopback', hop('http://[::1]:PORT/'), { bites: hasIpv6 }),
  redirected('a redirect to the metadata service', hop('http://169.254.169.254/latest'), { bites: false }),
  redirected('a redirect to another scheme', hop('ftp://127.0.0.1:PORT/'), { why: scheme, bites: false }),
  redirected('a redirect to a file', hop('file:///etc/passwd'), { why: scheme, bites: false }),
  redirected('a redirect with a user name', hop('http://images.example@127.0.0.1:PORT/'), {
    why: credentials,
    bites: false,
  }),
  redirected('a redirect to no URL', hop('http://'), { why: noUrl, bites: false }),
  redirected('a redirect to a name of loopback', hop('http://images.example:PORT/'), {
    names: { 'images.example': [['127.0.0.1']] },
  }),
  redirected('a redirect to a relative place and on from there', hop(hop(toCanary).replace('HOP', ''))),
  redirected('a redirect in a circle', hop(''), { why: redirectedTooOften, bites: false }),
];

const table = [...loopbackForms, ...ipv4Networks, ...ipv6Forms, ...names, ...tricks, ...redirects];

/** A resolver that answers from a list and remembers what it was asked. */
function resolverOf(names: Case['names'] = {}): { asked: string[]; resolveHost: ResolveHost } {
  const asked: string[] = [];
  const resolveHost: ResolveHost = (host, callback) => {
    const before = asked.filter((name) => name === host).length;
    asked.push(host);
    const addresses = names[host]?.[before] ?? names[host]?.at(-1);
    if (addresses === undefined) {
      callback(Object.assign(new Error('no such host'), { code: 'ENOTFOUND' }), []);
    } else {
      callback(
        null,
        addresses.map((address): LookupAddress => ({ address, family: address.includes(':') ? 6 : 4 })),
      );
    }
  };
  return { asked, resolveHost };
}

/** Why a download failed, as its operator reads it. */
async function causeOf(work: Promise<unknown>): Promise<string> {
  const error = await work.then(
    () => assert.fail('it was fetched'),
    (thrown: unknown) => thrown,
  );
  assert(error instanceof ApiError, String(error));
  return (error.cause as Error).message;
}

async function fetchAll(download: Downloader, link: string): Promise<Buffer> {
  const { content } = await download(link, wait);
  const chunks: Buffer[] = [];
  for await (const chunk of content) chunks.push(chunk);
  return Buffer.concat(chunks);
}

describe('links from outside', () => {
  /** What must never be reached; it listens on every address of this machine. */
  let canary: Server;
  let canaryPort: number;
  let caught = 0;
  /** The trusted server. */
  let server: Server;
  let origin: string;
  let answer: (request: IncomingMessage, response: ServerResponse) => void;
  /** Where connections of this process were tried to, but those to the trusted server: `address port`. */
  let tried: string[] = [];

  const watch = (message: unknown): void => {
    const { socket } = message as { socket: Socket };
    socket.on('connectionAttempt', (address: string, port: number) => {
      if (port !== Number(new URL(origin).port)) tried.push(`${address} ${port}`);
    });
  };
  const listen = async (listener: Server, host: string): Promise<number> => {
    listener.listen(0, host);
    await once(listener, 'listening');
    return (listener.address() as AddressInfo).port;
  };
  const close = async (listener: Server): Promise<void> => {
    listener.close();
    listener.closeAllConnections();
    await once(listener, 'close');
  };
  const redirect = ({ url = '' }: IncomingMessage, response: ServerResponse): void => {
    const { searchParams } = new URL(url, origin);
    response.writeHead(Number(searchParams.get('status')), { location: searchParams.get('to') ?? '' }).end('moved');
  };

  before(async () => {
    canary = createServer((_request, response) => response.end('secret'));
    canary.on('connection', () => {
      caught += 1;
    });
    canaryPort = await listen(canary, hasIpv6 ? '::' : '0.0.0.0');
    server = createServer((request, response) => answer(request, response));
    origin = `http://127.0.0.1:${await listen(server, '127.0.0.1')}`;
    channel('net.client.socket').subscribe(watch);
  });
  after(async () => {
    channel('net.client.socket').unsubscribe(watch);
    await close(canary);
    await close(server);
  });
  beforeEach(() => {
    caught = 0;
    tried = [];
    answer = redirect;
  });

  const linkOf = (link: string): string => {
    // Each hop's own address is inside the query of the one before, encoded once more each time.
    return link.replaceAll('HOP', origin).replaceAll('PORT', String(canaryPort));
  };
  const guarded = (options: DownloaderOptions = {}): Downloader =>
    createDownloader({ trustedOrigin: origin, ...options });

  it('the table of forged links has at least 60 links that would reach the canary, with unique names', () => {
    assert.ok(table.length >= 60, `${table.length} cases`);
    assert.ok(table.filter(({ bites }) => bites).length >= 60);
    assert.equal(new Set(table.map(({ name }) => name)).size, table.length);
  });

  for (const { name, link, why, names: known } of table) {
    it(`the downloader does not follow ${name}`, async () => {
      const { resolveHost } = resolverOf(known);
      const cause = await causeOf(guarded({ resolveHost })(linkOf(link), wait));
      assert.equal(cause, `the link was not followed: ${why}`);
      assert.deepEqual({ caught, tried }, { caught: 0, tried: [] });
    });
  }

  for (const { name, link, names: known } of table.filter(({ bites }) => bites)) {
    it(`a client without a guard reaches the canary by ${name}`, async () => {
      const { resolveHost } = resolverOf(known);
      const agent = new Agent({
        connect: {
          lookup: (host, { all }, callback) =>
            resolveHost(host, (error, addresses) => {
              const usable = addresses.filter(({ address }) => address !== publicAddress);
              if (all) callback(error, usable);
              else callback(error, usable[0]?.address ?? '', usable[0]?.family);
            }),
        },
      });
      try {
        const found = await fetch(linkOf(link), { dispatcher: agent });
        assert.equal(await found.text(), 'secret');
        assert.ok(caught > 0);
      } finally {
        await agent.destroy();
      }
    });
  }

  it('the downloader does not follow localhost, of which name servers know nothing, or that it is not public', async () => {
    const cause = await causeOf(guarded()(`http://localhost:${canaryPort}/`, wait));
    assert.match(cause, /^the link (was not followed: its address is not public|could not be followed \()/);
    assert.deepEqual({ caught, tried }, { caught: 0, tried: [] });
  });

  it('the downloader connects to the address it checked, even when the name resolves to another a moment later', async () => {
    const { asked, resolveHost } = resolverOf({ 'rebind.example': [[publicAddress], ['127.0.0.1']] });
    // Nobody has the address: the network says so, or is silent until the time is over.
    const cause = await causeOf(guarded({ resolveHost, maxMs: 500 })(`http://rebind.example:${canaryPort}/`, wait));
    assert.match(cause, /^the link could not be followed/);
    assert.deepEqual(asked, ['rebind.example']);
    assert.deepEqual({ caught, tried }, { caught: 0, tried: [`${publicAddress} ${canaryPort}`] });
  });

  it('the downloader checks a name again when it recurs in a redirect', async () => {
    const { port } = new URL(origin);
    const { asked, resolveHost } = resolverOf({ 'rebind.example': [['127.0.0.1']] });
    const trustedOrigin = `http://rebind.example:${port}`;
    const link = linkOf(hop('http://rebind.example:PORT/')).replace(origin, trustedOrigin);
    const cause = await causeOf(guarded({ resolveHost, trustedOrigin })(link, wait));
    assert.equal(cause, `the link was not followed: ${notPublic}`);
    assert.deepEqual({ caught, tried, asked: asked.length }, { caught: 0, tried: [], asked: 2 });
  });

  it('the downloader trusts a vendor by its whole origin: scheme, host and port', async () => {
    const { port } = new URL(origin);
    const { resolveHost } = resolverOf({ 'vendor.example': [['127.0.0.1']] });
    answer = (_request, response) => response.end('a file');
    const trusting = (trustedOrigin: string) => createDownloader({ trustedOrigin, resolveHost });
    const link = `http://vendor.example:${port}/`;
    assert.equal((await fetchAll(trusting(`http://vendor.example:${port}`), link)).toString(), 'a file');
    for (const other of [`https://vendor.example:${port}`, 'http://vendor.example', origin]) {
      assert.equal(await causeOf(trusting(other)(link, wait)), `the link was not followed: ${notPublic}`, other);
    }
  });

  it('the downloader does not wait for a resolver that does not answer', async () => {
    const download = guarded({ resolveHost: () => undefined, maxMs: 200 });
    const cause = await causeOf(download('http://images.example/', wait));
    assert.equal(cause, 'the link could not be followed (it took too long)');
  });

  it('the downloader has one time limit for all redirects', async () => {
    answer = (_request, response) => {
      setTimeout(() => response.writeHead(302, { location: '/again' }).end(), 150);
    };
    const cause = await causeOf(guarded({ maxMs: 400 })(origin, wait));
    assert.equal(cause, 'the link could not be followed (it took too long)');
  });

  it('the downloader gives up when a server sends headers without end', async () => {
    answer = (_request, response) => {
      response.socket?.write('HTTP/1.1 200 OK\r\n');
      const drip = setInterval(() => response.socket?.write('x-drip: 1\r\n'), 20);
      response.once('close', () => clearInterval(drip));
    };
    const cause = await causeOf(guarded({ maxMs: 300 })(origin, wait));
    assert.equal(cause, 'the link could not be followed (it took too long)');
  });

  it('the downloader leaves a redirect with an endless body at once', async () => {
    let left: Promise<unknown> | undefined;
    answer = ({ url }, response) => {
      if (url === '/file') {
        response.end('a file');
        return;
      }
      left = once(response, 'close');
      response.writeHead(302, { location: '/file' });
      const pour = (): void => {
        while (!response.destroyed && response.write(Buffer.alloc(65_536)));
      };
      response.on('drain', pour);
      pour();
    };
    const { content } = await guarded()(origin, wait);
    await left;
    assert.equal((await content.toArray()).join(''), 'a file');
  });

  it('an aborted download harms nobody when nobody has started to read', async () => {
    let left: Promise<unknown> | undefined;
    answer = (_request, response) => {
      left = once(response, 'close');
      response.write('half');
    };
    const controller = new AbortController();
    const { content } = await guarded()(origin, { ...wait, signal: controller.signal });
    const reason = new ApiError('timeout', 'The deadline has passed.');
    controller.abort(reason);
    await left;
    const read = (async () => {
      for await (const _chunk of content) assert.fail('something came of it');
    })();
    await assert.rejects(read, reason);
  });

  it('the downloader yields no more than the size limit of an endless file', async () => {
    let left: Promise<unknown> | undefined;
    answer = (_request, response) => {
      left = once(response, 'close');
      const pour = (): void => {
        while (!response.destroyed && response.write(Buffer.alloc(65_536)));
      };
      response.on('drain', pour);
      pour();
    };
    const { content } = await guarded({ longest: 1_000_000 })(origin, wait);
    let bytes = 0;
    const read = (async () => {
      for await (const chunk of content) {
        bytes += chunk.length;
        if (bytes > 2_000_000) content.destroy();
      }
    })();
    assert.equal(await causeOf(read), 'the link was not followed: it has more than 1000000 bytes');
    assert.ok(bytes <= 1_000_000);
    await left;
  });

  it('the downloader does not trust a content-length that differs from the file', async () => {
    const raw = (head: string, body: string) => {
      answer = (_request, { socket }) => void socket?.end(`HTTP/1.1 200 OK\r\n${head}\r\n\r\n${body}`);
    };
    raw('content-length: 10', 'x'.repeat(5000));
    const text = await fetchAll(guarded({ longest: 1000 }), origin).then(String, (error) => error);
    // What is beyond the length is no part of the file, however it is read.
    assert.ok(text instanceof ApiError || text === 'x'.repeat(10), String(text));
    raw('content-length: 5000', 'x'.repeat(10));
    assert.match(await causeOf(fetchAll(guarded(), origin)), /could not be followed/);
    raw('content-length: -1', 'x');
    assert.match(await causeOf(fetchAll(guarded(), origin)), /could not be followed/);
    raw('content-length: 10\r\ntransfer-encoding: chunked', `7d0\r\n${'x'.repeat(2000)}\r\n0\r\n\r\n`);
    await causeOf(fetchAll(guarded({ longest: 1000 }), origin));
  });

  it('the downloader sends no gateway headers except its name', async () => {
    let headers: IncomingMessage['headers'] = {};
    answer = (request, response) => {
      headers = request.headers;
      response.end();
    };
    await fetchAll(guarded(), `${origin}/a`);
    const { host, connection, ...rest } = headers;
    assert.deepEqual(rest, { 'user-agent': 'sluice', 'accept-encoding': 'identity' });
    assert.deepEqual([host, connection], [new URL(origin).host, 'keep-alive']);
  });

  describe('links of a caller', () => {
    const callerError = {
      code: 'invalid_request_error',
      message:
        'A link of the request could not be fetched: it must lead to a public address, and to at most 20 MB within 10 seconds.',
    };
    const limit = 20 * 1024 * 1024;

    it("a caller's link that leads nowhere is the caller's error, without the reason", async () => {
      const { resolveHost } = resolverOf({ 'inside.example': [['10.0.0.1']] });
      const download = createCallerDownloader({ resolveHost });
      for (const link of ['http://inside.example/', 'http://nowhere.example/', 'http://[::1]/', 'file:///x', 'x']) {
        await assert.rejects(download(link, wait), callerError, link);
      }
      assert.deepEqual(tried, []);
    });

    it("a caller's link may lead to 20 MB and not one byte more", async () => {
      const download = createCallerDownloader({ trustedOrigin: origin });
      answer = (_request, response) => response.end(Buffer.alloc(limit));
      assert.equal((await fetchAll(download, origin)).length, limit);
      answer = (_request, response) => response.writeHead(200, { 'content-length': limit + 1 }).write('x');
      await assert.rejects(download(origin, wait), callerError);
      answer = (_request, response) => {
        response.write(Buffer.alloc(limit));
        response.end('x');
      };
      await assert.rejects(fetchAll(download, origin), callerError);
    });

    it("a caller's link is given up after 10 seconds, even when its server never falls silent", async () => {
      answer = (_request, response) => {
        const drip = setInterval(() => response.write('x'), 100);
        response.once('close', () => clearInterval(drip));
      };
      const startedAt = performance.now();
      await assert.rejects(fetchAll(createCallerDownloader({ trustedOrigin: origin }), origin), callerError);
      const seconds = (performance.now() - startedAt) / 1000;
      assert.ok(seconds > 9.5 && seconds < 15, `${seconds} s`);
    });
  });
});
