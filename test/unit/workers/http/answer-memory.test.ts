import assert from 'node:assert/strict';
import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import { after, before, describe, it, mock, test } from 'node:test';
import {
  type AnswerHolder,
  AnswerMemory,
  boundAnswers,
  freeBytes,
  type LongAnswer,
  releaseAnswers,
} from '../../../../workers/http/answer-memory.ts';
import { createDownloader } from '../../../../workers/http/download.ts';
import { createHttpClient, type HttpClient } from '../../../../workers/http/http-client.ts';
import { DeltaStream, SseReader } from '../../../../workers/vendors/support/delta-stream.ts';
import { ImageDelivery } from '../../../../workers/vendors/support/image-delivery.ts';
import type { VendorCall } from '../../../../workers/vendors/vendor.ts';
import { callOf, type FixtureVendor, sendJson, startFixtureVendor } from '../../../vendors/contracts/fixture-vendor.ts';

const piece = 64 * 1024;
/** Its last bytes make it a long one. */
const closing = 'a'.repeat(freeBytes + 1);

/** A memory of 100 bytes, and the answers that it has let go on after a wait, or given up. */
function memoryOf100() {
  const memory = new AnswerMemory(100, Number.POSITIVE_INFINITY);
  const resumed: string[] = [];
  const givenUp: string[] = [];
  const open = (name: string, holder?: AnswerHolder): LongAnswer => {
    const answer = memory.open(
      holder,
      () => resumed.push(name),
      () => {
        givenUp.push(name);
        answer.end(false);
      },
    );
    return answer;
  };
  return { memory, resumed, givenUp, open };
}

test('answers beyond the bound wait, except the first, which ends and makes room for all', () => {
  const { resumed, open } = memoryOf100();
  const [first, second, third] = [open('first'), open('second'), open('third')];
  assert.equal(first.growTo(60), true);
  assert.equal(second.growTo(40), true);
  assert.equal(third.growTo(10), false);
  assert.equal(second.growTo(50), false);
  assert.equal(first.growTo(70), true);
  assert.deepEqual(resumed, []);
  first.end(true);
  assert.deepEqual(resumed, ['second', 'third']);
});

test('an answer that a job holds counts until the job gives it back, and the first of the others waits for that', () => {
  const { memory, resumed, open } = memoryOf100();
  const holder: AnswerHolder = {};
  const held = open('held', holder);
  held.growTo(90);
  held.end(true);
  assert.equal(holder.holdsAnswer, true);
  const next = open('next');
  assert.equal(next.growTo(20), false);
  memory.release(holder);
  assert.equal(holder.holdsAnswer, false);
  assert.deepEqual(resumed, ['next']);
});

test('an answer that fails counts for nothing, whoever would have held it', () => {
  const { resumed, open } = memoryOf100();
  const holder: AnswerHolder = {};
  const [failing, next] = [open('failing', holder), open('next')];
  failing.growTo(90);
  assert.equal(next.growTo(20), false);
  failing.end(false);
  assert.notEqual(holder.holdsAnswer, true);
  assert.deepEqual(resumed, ['next']);
});

test('jobs of several answers do not wait for each other for ever: the first goes on while what is held waits, too', () => {
  const { memory, resumed, open } = memoryOf100();
  const [one, other]: AnswerHolder[] = [{}, {}];
  for (const holder of [one, other]) {
    const answer = open('', holder);
    answer.growTo(50);
    answer.end(true);
  }
  const [ofOne, ofOther] = [open('of one', one), open('of the other', other)];
  assert.equal(ofOne.growTo(10), true);
  assert.equal(ofOther.growTo(10), false);
  ofOne.end(true);
  // The one job ends by itself now.
  assert.deepEqual(resumed, []);
  memory.release(one as AnswerHolder);
  assert.deepEqual(resumed, ['of the other']);
});

test('the further answer of a job that holds one goes on before all others, so that it gives back both', () => {
  const { memory, resumed, open } = memoryOf100();
  const holders: AnswerHolder[] = [{}, {}];
  const [one, other] = holders.map((holder, index) => open(`answer ${index}`, holder)) as [LongAnswer, LongAnswer];
  one.growTo(60);
  assert.equal(other.growTo(50), false);
  one.end(true);
  const further = open('further', holders[0]);
  assert.equal(further.growTo(10), true);
  assert.deepEqual(resumed, []);
  further.end(true);
  memory.release(holders[0] as AnswerHolder);
  assert.deepEqual(resumed, ['answer 1']);
});

test('beyond the bound accounts have turns, so that one with many jobs holds up another for one of them at a time', () => {
  const { memory, resumed, open } = memoryOf100();
  const jobsOf = (account: string): AnswerHolder[] => Array.from({ length: 3 }, () => ({ job: { account } }));
  const [many, few] = [jobsOf('many'), jobsOf('few')];
  const [first, second] = many.map((job, at) => open(`many ${at}`, job)) as [LongAnswer, LongAnswer];
  first.growTo(90);
  assert.equal(second.growTo(60), false);
  const others = few.map((job, at) => open(`few ${at}`, job)) as [LongAnswer, LongAnswer, LongAnswer];
  for (const other of others) assert.equal(other.growTo(60), false);
  const end = (answer: LongAnswer, job: AnswerHolder | undefined): void => {
    answer.end(true);
    memory.release(job as AnswerHolder);
  };
  // A job goes on until it is over, before all others.
  first.end(true);
  const further = open('further', many[0]);
  assert.equal(further.growTo(10), true);
  assert.deepEqual(resumed, []);
  end(further, many[0]);
  assert.deepEqual(resumed, ['few 0']);
  end(others[0], few[0]);
  assert.deepEqual(resumed, ['few 0', 'many 1']);
  end(second, many[1]);
  assert.deepEqual(resumed, ['few 0', 'many 1', 'few 1']);
});

test('the first answer is the last one once its vendor sends hardly anything while others wait', () => {
  mock.timers.enable({ apis: ['setTimeout'] });
  try {
    const memory = new AnswerMemory(8_000_000, Number.POSITIVE_INFINITY);
    const resumed: string[] = [];
    const [dripping, second, third] = ['dripping', 'second', 'third'].map((name) =>
      memory.open(undefined, () => resumed.push(name), assert.fail),
    ) as [LongAnswer, LongAnswer, LongAnswer];
    dripping.growTo(4_000_000);
    assert.equal(second.growTo(5_000_000), false);
    assert.equal(third.growTo(1_000_000), false);
    assert.equal(dripping.growTo(5_000_000), true);
    mock.timers.tick(5000);
    assert.deepEqual(resumed, [], 'it has come in meanwhile');
    assert.equal(dripping.growTo(5_000_001), true);
    mock.timers.tick(5000);
    assert.deepEqual(resumed, ['second']);
    assert.equal(dripping.growTo(5_000_002), false);
    assert.equal(second.growTo(6_000_000), true);
    second.end(false);
    assert.deepEqual(resumed, ['second', 'third', 'dripping']);
  } finally {
    mock.timers.reset();
  }
});

test('an answer that was passed over goes on once those are over that it held up, however many come after them', () => {
  mock.timers.enable({ apis: ['setTimeout'] });
  try {
    const { resumed, open } = memoryOf100();
    const [paused, second] = [open('paused'), open('second')];
    paused.growTo(60);
    assert.equal(second.growTo(50), false);
    mock.timers.tick(5000);
    assert.deepEqual(resumed, ['second']);
    assert.equal(paused.growTo(70), false);
    assert.equal(open('third').growTo(60), false);
    second.end(false);
    assert.deepEqual(resumed, ['second', 'paused']);
  } finally {
    mock.timers.reset();
  }
});

test('an answer that was passed over has had the turn of its account, so that many slow ones hold up another account once', () => {
  mock.timers.enable({ apis: ['setTimeout'] });
  try {
    const { resumed, open } = memoryOf100();
    for (let slow = 0; slow < 10; slow++) open(`slow ${slow}`, { job: { account: 'slow' } }).growTo(20);
    const other = open('other', { job: { account: 'other' } });
    assert.equal(other.growTo(20), false);
    mock.timers.tick(5000);
    assert.deepEqual(resumed, ['other']);
  } finally {
    mock.timers.reset();
  }
});

test('answers whose vendors stop half-way let others in up to a bound, and then the largest of them is given up', () => {
  mock.timers.enable({ apis: ['setTimeout'] });
  try {
    const { resumed, givenUp, open } = memoryOf100();
    const kept = new Map<string, number>();
    let most = 0;
    for (let index = 0; index < 20; index++) {
      const name = `stopping ${index}`;
      const answer = open(name);
      const bytes = index === 1 ? 95 : 90;
      const isFree = answer.growTo(bytes);
      for (let looks = 0; !isFree && !resumed.includes(name); looks++) {
        assert.ok(looks < 5, `${name} waits for ever`);
        mock.timers.tick(5000);
      }
      kept.set(name, bytes);
      for (const ended of givenUp) kept.delete(ended);
      most = Math.max(
        most,
        [...kept.values()].reduce((sum, more) => sum + more),
      );
    }
    assert.ok(most <= 200 + 2 * 95, `${most} bytes are kept`);
    assert.equal(givenUp[0], 'stopping 1');
  } finally {
    mock.timers.reset();
  }
});

test('a job that holds answers holds up the others no longer once a call of its own gets nothing, and does again when it does', () => {
  mock.timers.enable({ apis: ['setTimeout'] });
  try {
    const { memory, resumed, open } = memoryOf100();
    const holder: AnswerHolder = {};
    const held = open('held', holder);
    held.growTo(90);
    held.end(true);
    const [next, other] = [open('next'), open('other')];
    assert.equal(next.growTo(20), false);
    mock.timers.tick(5000);
    assert.deepEqual(resumed, ['next']);
    assert.equal(other.growTo(10), false);
    assert.equal(next.growTo(30), true);
    next.end(false);
    assert.deepEqual(resumed, ['next', 'other']);
    const further = open('further', holder);
    further.growTo(10);
    further.end(true);
    assert.equal(other.growTo(20), false, 'it has got one, and may end now');
    memory.release(holder);
    assert.deepEqual(resumed, ['next', 'other', 'other']);
  } finally {
    mock.timers.reset();
  }
});

test('jobs that hold answers for long, as while a slow store takes them, do not let in answers without bound', () => {
  mock.timers.enable({ apis: ['setTimeout'] });
  try {
    const { memory, resumed, open } = memoryOf100();
    const holders: AnswerHolder[] = Array.from({ length: 10 }, () => ({}));
    let taken = 0;
    for (const [index, holder] of holders.entries()) {
      const answer = open(`answer ${index}`, holder);
      if (!answer.growTo(50)) {
        mock.timers.tick(5000);
        if (resumed.at(-1) !== `answer ${index}`) break;
      }
      answer.end(true);
      taken += 50;
    }
    assert.equal(taken, 200);
    memory.release(holders[0] as AnswerHolder);
    assert.deepEqual(resumed.slice(-1), ['answer 4']);
  } finally {
    mock.timers.reset();
  }
});

/** Keeps all that it is sent, as the beginning of an event, or makes a frame of each chunk. */
class TestStream extends DeltaStream {
  readonly #framesOf: number;

  constructor(framesOf: number) {
    super({ write: () => true, drained: () => Promise.resolve() });
    this.#framesOf = framesOf;
  }

  protected override take(): void {
    for (let frame = 0; frame < this.#framesOf; frame++) this.write('x'.repeat(piece));
  }
}

/** Makes a frame of each event. */
class EventStream extends DeltaStream {
  readonly #events = new SseReader((data) => this.write(JSON.stringify(data)));

  constructor() {
    super({ write: () => true, drained: () => Promise.resolve() });
  }

  protected override take(bytes: Buffer): void {
    this.#events.read(bytes);
  }
}

/** More than the buffers of two sockets take. */
const long = JSON.stringify('x'.repeat(32 * 1024 * 1024));

describe('a vendor whose answers fill the memory', () => {
  let vendor: FixtureVendor;
  let http: HttpClient;
  /** Characters of the last long answer that the vendor got rid of. */
  let taken = 0;
  /** Answers begun that stop half-way. */
  let stopping = 0;
  const limits = { signal: new AbortController().signal, silenceMs: 60_000 };
  const types = { '/stream': 'text/event-stream', '/image': 'image/png' };
  before(async () => {
    // However slow the machine is, no job counts as stalled.
    mock.timers.enable({ apis: ['setTimeout'] });
    vendor = await startFixtureVendor();
    http = createHttpClient({ vendor: 'v', baseUrl: vendor.baseUrl, headers: {}, secret: '' });
    boundAnswers(1024 * 1024);
    vendor.answer(async (response, { url = '' }) => {
      if (url.endsWith('/short')) return sendJson(response, 200, '"short"');
      if (url.endsWith('/closing')) {
        const headers = { 'content-type': 'application/json', 'content-length': closing.length };
        response.writeHead(200, headers).end(closing, () => response.socket?.end());
        return;
      }
      if (url.endsWith('/unmeasured')) {
        response.useChunkedEncodingByDefault = false;
        response.writeHead(200, { 'content-type': 'application/json', connection: 'close' }).end(closing);
        return;
      }
      if (/\/stopping(\.png)?$/.test(url)) {
        stopping++;
        const image = Buffer.concat([Buffer.from('89504e470d0a1a0a', 'hex'), Buffer.alloc(8 * freeBytes)]);
        response.writeHead(200).write(url.endsWith('.png') ? image : closing.repeat(8));
        return;
      }
      const type = Object.entries(types).find(([path]) => url.endsWith(path))?.[1] ?? 'application/json';
      response.writeHead(200, { 'content-type': type });
      for (taken = 0; taken < long.length; taken += piece) {
        if (!response.write(long.slice(taken, taken + piece))) await once(response, 'drain');
      }
      response.end();
    });
  });
  after(async () => {
    mock.timers.reset();
    boundAnswers(Number.POSITIVE_INFINITY);
    await http.close();
    await vendor.close();
  });

  /** Resolves once nothing of the last answer is taken any more, while short ones come and go. */
  async function untilStopped(read = () => taken): Promise<void> {
    for (let [same, earlier] = [0, 0]; same < 20; earlier = read()) {
      assert.equal(await http.get({ path: '/short', ...limits }), '"short"');
      same = read() === earlier ? same + 1 : 0;
    }
  }

  it('is read no further while a job holds one, and the next is whole afterwards', async () => {
    const holder: AnswerHolder = {};
    assert.equal(await http.get({ path: '/whole', holder, ...limits }), long);
    const next = http.get({ path: '/whole', ...limits });
    await untilStopped();
    assert.ok(taken < long.length);
    releaseAnswers(holder);
    assert.equal(await next, long);
  });

  it('is whole once all its bytes have come, also if its vendor closes the connection while others hold all there is', async () => {
    const holder: AnswerHolder = {};
    assert.equal(await http.get({ path: '/whole', holder, ...limits }), long);
    assert.equal(await http.get({ path: '/closing', ...limits }), closing);
    assert.equal(await http.get({ path: '/unmeasured', ...limits }), closing);
    releaseAnswers(holder);
  });

  it('fails in the largest answer that stops half-way, once others wait and such answers take several times the memory', async () => {
    const left = new AbortController();
    const codes: string[] = [];
    const asked = Array.from({ length: 8 }, () =>
      http.get({ path: '/stopping', ...limits, signal: left.signal }).catch(({ code }) => codes.push(code)),
    );
    while (codes.length === 0) {
      await http.get({ path: '/short', ...limits });
      mock.timers.tick(5000);
    }
    left.abort();
    await Promise.all(asked);
    assert.deepEqual([codes[0], codes.at(-1)], ['timeout', 'cancelled']);
  });

  it('is read no further in a stream whose event does not end, nor is one that becomes frames held up', async () => {
    const holder: AnswerHolder = {};
    assert.equal(await http.get({ path: '/whole', holder, ...limits }), long);
    const read = (stream: DeltaStream) =>
      http.get({ path: '/stream', onChunk: (bytes) => stream.read(bytes), ...limits });
    assert.equal(await read(new TestStream(1)), null);
    const endless = read(new TestStream(0));
    await untilStopped();
    assert.ok(taken < long.length);
    releaseAnswers(holder);
    assert.equal(await endless, null);
  });

  /** Fetches an image by its link, for the answer of a job. */
  function fetchImage(call: Partial<VendorCall>, path = '/image'): Promise<{ readonly b64_json?: unknown }> {
    const { origin } = new URL(vendor.baseUrl);
    const download = createDownloader({ trustedOrigin: origin });
    return new ImageDelivery(callOf(call), 'b64_json', download).deliver({ url: origin + path });
  }

  it('is read no further in an image by a link, whose base64 the job holds afterwards', async () => {
    const [holder, holderOfImage]: AnswerHolder[] = [{}, {}];
    assert.equal(await http.get({ path: '/whole', holder, ...limits }), long);
    const image = fetchImage({ holder: holderOfImage });
    await untilStopped();
    assert.ok(taken < long.length);
    releaseAnswers(holder as AnswerHolder);
    assert.equal(String((await image).b64_json), Buffer.from(long).toString('base64'));
    const next = http.get({ path: '/whole', ...limits });
    await untilStopped();
    assert.ok(taken < long.length);
    releaseAnswers(holderOfImage as AnswerHolder);
    assert.equal(await next, long);
  });

  it('is read no further in an image whose job is stopped while it waits, which leaves the room to others', async () => {
    const holder: AnswerHolder = {};
    assert.equal(await http.get({ path: '/whole', holder, ...limits }), long);
    const stopped = new AbortController();
    const image = assert.rejects(fetchImage({ holder: {}, signal: stopped.signal }), { code: 'cancelled' });
    await untilStopped();
    stopped.abort();
    await image;
    releaseAnswers(holder);
    assert.equal(await http.get({ path: '/whole', ...limits }), long);
  });

  it('is asked anew for the largest image by a link that stops half-way, once others wait and such images take several times the memory', async () => {
    const left = new AbortController();
    const before = stopping;
    // One that is given up just when its job ends fails by that.
    const images = Array.from({ length: 8 }, () =>
      assert.rejects(fetchImage({ signal: left.signal }, '/stopping.png'), { code: /^(cancelled|server_error)$/ }),
    );
    while (stopping <= before + images.length) {
      await http.get({ path: '/short', ...limits });
      mock.timers.tick(5000);
    }
    left.abort();
    await Promise.all(images);
  });

  it('is read on once the events of other streams have become frames, and none of them fails by that', async () => {
    const begun: ServerResponse[] = [];
    vendor.answer((response, { url = '' }) => {
      if (url.endsWith('/short')) return sendJson(response, 200, '"short"');
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      response.write('data:'.padEnd(900 * 1024, 'x'));
      begun.push(response);
    });
    let bytes = 0;
    const read = (stream: DeltaStream) => {
      const onChunk = (chunk: Buffer) => {
        bytes += chunk.length;
        return stream.read(chunk);
      };
      return http.get({ path: '/events', onChunk, ...limits });
    };
    const streams = [read(new EventStream()), read(new EventStream()), read(new EventStream())];
    await untilStopped(() => bytes);
    assert.ok(begun.length === 3 && bytes < 3 * 900 * 1024);
    for (const response of begun) response.end('\n\n');
    assert.deepEqual(await Promise.all(streams), [null, null, null]);
  });
});
