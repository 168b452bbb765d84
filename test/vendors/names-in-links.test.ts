import assert from 'node:assert/strict';
import { createSocket } from 'node:dgram';
import { lookup, Resolver } from 'node:dns/promises';
import { once } from 'node:events';
import { after, before, beforeEach, describe, it } from 'node:test';
import { ApiError } from '../../shared/errors.ts';
import { createCallerDownloader } from '../../workers/http/download.ts';
import { askNameServers } from '../../workers/http/resolve-host.ts';
import { eventually } from '../support/eventually.ts';
import { withResolvers } from '../support/with-resolvers.ts';

const wait = { signal: new AbortController().signal, silenceMs: 60_000 };
/** Types of questions, and the code of a name that does not exist (RFC 1035, section 4.1). */
const [typeA, typeAaaa, noSuchName] = [1, 28, 3];
const headBytes = 12;

/** A question for a name server. */
interface Question {
  readonly name: string;
  readonly type: number;
  /** @param addresses in bytes; none: there is no such name */
  answer(addresses: readonly (readonly number[])[]): void;
}

/** The answer to a message with one question. */
function answerTo(message: Buffer, end: number, type: number, addresses: readonly (readonly number[])[]): Buffer {
  const head = Buffer.alloc(headBytes);
  message.copy(head, 0, 0, 2);
  head.writeUInt16BE(0x8180 | (addresses.length === 0 ? noSuchName : 0), 2);
  head.writeUInt16BE(1, 4);
  head.writeUInt16BE(addresses.length, 6);
  // The name is that of the question; a minute.
  const records = addresses.map((bytes) =>
    Buffer.from([0xc0, 0x0c, 0, type, 0, 1, 0, 0, 0, 60, 0, bytes.length, ...bytes]),
  );
  return Buffer.concat([head, message.subarray(headBytes, end), ...records]);
}

describe('names in links', () => {
  const server = createSocket('udp4');
  /** The name servers of this machine. */
  let servers: string[] = [];
  const openResolver = (): Resolver => {
    const resolver = new Resolver();
    resolver.setServers(servers);
    return resolver;
  };
  const download = createCallerDownloader({ resolveHost: askNameServers(openResolver) });
  const asked: Question[] = [];
  let take: (question: Question) => void = () => undefined;

  before(async () => {
    server.on('message', (message, { address, port }) => {
      const labels: string[] = [];
      let at = headBytes;
      for (let length = message[at] ?? 0; length > 0; length = message[at] ?? 0) {
        labels.push(message.toString('latin1', at + 1, at + 1 + length));
        at += length + 1;
      }
      const type = message.readUInt16BE(at + 1);
      const question: Question = {
        ...{ name: labels.join('.').toLowerCase(), type },
        answer: (addresses) => server.send(answerTo(message, at + 5, type, addresses), port, address),
      };
      asked.push(question);
      take(question);
    });
    server.bind(0, '127.0.0.1');
    await once(server, 'listening');
    servers = [`127.0.0.1:${server.address().port}`];
  });
  after(() => server.close());
  beforeEach(() => {
    asked.length = 0;
  });

  async function refusal(link: string): Promise<ApiError> {
    const error = await download(link, wait).then(
      () => assert.fail('it was fetched'),
      (thrown: unknown) => thrown,
    );
    assert(error instanceof ApiError, String(error));
    assert.equal(error.code, 'invalid_request_error');
    return error;
  }

  it('names whose servers are silent, however many, occupy no thread, which lookups for vendors need', async () => {
    take = () => undefined;
    const links = Array.from({ length: 16 }, (_, index) => refusal(`http://name-${index}.example/image.png`));
    await eventually(() => assert.equal(new Set(asked.map(({ name }) => name)).size, links.length));
    assert.ok((await lookup('localhost')).address);
    take = (question) => question.answer([]);
    for (const question of [...asked]) question.answer([]);
    await Promise.all(links);
  });

  it('silent name servers are not asked any more once a connection would be given up', async (t) => {
    t.mock.timers.enable({ apis: ['setTimeout'] });
    const both = withResolvers();
    take = () => {
      if (asked.length === 2) both.resolve();
    };
    const ended = new Promise((resolve) => askNameServers(openResolver)('silent.example', resolve));
    await both.promise;
    t.mock.timers.tick(10_000);
    assert.equal(((await ended) as NodeJS.ErrnoException).code, 'ECANCELLED');
  });

  it('a name is refused if any of its addresses is not public, of either version', async () => {
    const [publicAddress, loopback] = [
      [93, 184, 215, 14],
      [...Array.from({ length: 15 }, () => 0), 1],
    ];
    take = ({ type, answer }) => answer([type === typeA ? publicAddress : loopback] as number[][]);
    const error = await refusal('http://both.example/image.png');
    assert.match(String((error.cause as Error).message), /its address is not public/);
    assert.deepEqual(asked.map(({ type }) => type).sort(), [typeA, typeAaaa]);
    take = ({ type, answer }) => answer(type === typeA ? [[127, 0, 0, 1]] : []);
    assert.match(String(((await refusal('http://one.example/')).cause as Error).message), /its address is not public/);
    take = ({ answer }) => answer([]);
    assert.match(String(((await refusal('http://none.example/')).cause as Error).message), /ENOTFOUND/);
  });

  it('name servers that the network has in place of others are asked, without a restart', async () => {
    const [here, gone] = [servers, createSocket('udp4')];
    gone.bind(0, '127.0.0.1');
    await once(gone, 'listening');
    servers = [`127.0.0.1:${gone.address().port}`];
    gone.close();
    assert.match(String(((await refusal('http://before.example/')).cause as Error).message), /ECONNREFUSED/);
    servers = here;
    take = ({ answer }) => answer([]);
    assert.match(String(((await refusal('http://after.example/')).cause as Error).message), /ENOTFOUND/);
  });
});
