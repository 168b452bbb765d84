import assert from 'node:assert/strict';
import { once } from 'node:events';
import { after, test } from 'node:test';
import {
  type AnswerHolder,
  AnswerMemory,
  boundAnswers,
  type LongAnswer,
  releaseAnswers,
} from '../../../../workers/http/answer-memory.ts';
import { createHttpClient } from '../../../../workers/http/http-client.ts';
import { sendJson, startFixtureVendor } from '../../../vendors/contracts/fixture-vendor.ts';

const piece = 64 * 1024;

/** A memory of 100 bytes, and the answers that it has let go on after a wait. */
function memoryOf100() {
  const memory = new AnswerMemory(100, Number.POSITIVE_INFINITY);
  const resumed: string[] = [];
  const open = (name: string, holder?: AnswerHolder): LongAnswer => memory.open(holder, () => resumed.push(name));
  return { memory, resumed, open };
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

test('a vendor is read no further while held answers fill the memory, and its answer is whole afterwards', async () => {
  const vendor = await startFixtureVendor();
  const http = createHttpClient({ vendor: 'v', baseUrl: vendor.baseUrl, headers: {}, secret: '' });
  after(async () => {
    boundAnswers(Number.POSITIVE_INFINITY);
    await http.close();
    await vendor.close();
  });
  boundAnswers(1024 * 1024);
  // More than the buffers of both sockets take.
  const long = JSON.stringify('x'.repeat(32 * 1024 * 1024));
  let taken = 0;
  vendor.answer(async (response, { url = '' }) => {
    if (!url.endsWith('/second')) return sendJson(response, 200, url.endsWith('/short') ? '"short"' : long);
    response.writeHead(200, { 'content-type': 'application/json' });
    for (; taken < long.length; taken += piece) {
      if (!response.write(long.slice(taken, taken + piece))) await once(response, 'drain');
    }
    response.end();
  });
  const limits = { signal: new AbortController().signal, silenceMs: 60_000 };
  const holder: AnswerHolder = {};
  assert.equal(await http.get({ path: '/first', holder, ...limits }), long);
  const second = http.get({ path: '/second', ...limits });
  // Until nothing of it is taken any more, while other answers come and go.
  for (let [same, before] = [0, 0]; same < 20; before = taken) {
    assert.equal(await http.get({ path: '/short', ...limits }), '"short"');
    same = taken === before ? same + 1 : 0;
  }
  assert.ok(taken < long.length);
  releaseAnswers(holder);
  assert.equal(await second, long);
});
