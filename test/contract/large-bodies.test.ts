import assert from 'node:assert/strict';
import { after, describe, it } from 'node:test';
import { prepareChat } from '../../api/endpoints/prepare-chat.ts';
import { isLargeBody, LargeBodies } from '../../api/large-bodies.ts';
import { ApiError, type ErrorCode } from '../../shared/errors.ts';

const open: LargeBodies[] = [];
const largeBodies = (...limits: ConstructorParameters<typeof LargeBodies>): LargeBodies => {
  const made = new LargeBodies(...limits);
  open.push(made);
  return made;
};

after(() => Promise.all(open.map((bodies) => bodies.close())));

const chatBody = (content: unknown, fields: object = {}): Buffer =>
  Buffer.from(JSON.stringify({ model: 'm', messages: [{ role: 'user', content }], ...fields }));

const isCode = (code: ErrorCode) => (error: unknown) => error instanceof ApiError && error.code === code;

describe('LargeBodies', () => {
  it('prepares a body as the endpoint does, the request as bytes, and leaves the body as it was', async () => {
    const bodies = largeBodies();
    const url = `data:image/png;base64,${'QUJD'.repeat(500_000)}`;
    const parts = [{ type: 'image_url', image_url: { url } }];
    const body = chatBody(parts, { stream: true, stream_options: { include_usage: true }, 'schlüssel 🔑': '\ud800' });
    assert.equal(isLargeBody(body), true);
    const before = Buffer.from(body);
    const { request, ...rest } = await bodies.prepare('chat', body);
    const { request: text, ...expected } = prepareChat(body);
    assert.deepEqual(rest, expected);
    assert.equal(Buffer.from(request).toString(), text);
    assert.deepEqual(body, before);
  });

  it('passes on what the endpoint refuses, field and all', async () => {
    const bodies = largeBodies();
    const refused = bodies.prepare('chat', chatBody('x'.repeat(300_000), { temperature: 3 }));
    await assert.rejects(refused, { code: 'invalid_request_error', param: 'temperature' });
    await assert.rejects(bodies.prepare('chat', Buffer.from('{')), isCode('invalid_request_error'));
  });

  it('prepares many at once, each its own', async () => {
    const bodies = largeBodies();
    const models = Array.from({ length: 20 }, (_, index) => `model-${index}`);
    const prepared = await Promise.all(
      models.map((model) => bodies.prepare('chat', chatBody('x'.repeat(300_000), { model }))),
    );
    assert.deepEqual(
      prepared.map(({ model }) => model),
      models,
    );
  });

  it('answers 503 when too many bodies or bytes wait', async () => {
    const few = largeBodies({ waiting: 1 });
    const taken = [few.prepare('chat', chatBody('a')), few.prepare('chat', chatBody('b'))];
    await assert.rejects(few.prepare('chat', chatBody('c')), isCode('service_unavailable'));
    await Promise.all(taken);
    const small = largeBodies({ waitingBytes: 1000 });
    await assert.rejects(small.prepare('chat', chatBody('x'.repeat(2000))), isCode('service_unavailable'));
  });

  it('answers 500 to the body that the thread dies of, and goes on with the next ones', async () => {
    const bodies = largeBodies({ heapMiB: 24 });
    const objects = Array.from({ length: 600_000 }, () => ({}));
    const deadly = bodies.prepare('chat', chatBody('x', { objects }));
    const next = bodies.prepare('chat', chatBody('y'));
    await assert.rejects(deadly, isCode('server_error'));
    assert.equal((await next).model, 'm');
    assert.equal((await bodies.prepare('chat', chatBody('z'))).model, 'm');
  });

  it('answers 500 to a body that takes too long', async () => {
    const bodies = largeBodies({ taskMs: 1 });
    await assert.rejects(bodies.prepare('chat', chatBody('x'.repeat(1_000_000))), isCode('server_error'));
  });

  it('forgets a body whose caller left', async () => {
    const bodies = largeBodies({ waiting: 2 });
    const running = bodies.prepare('chat', chatBody('a'));
    const leaving = new AbortController();
    const left = bodies.prepare('chat', chatBody('b'), leaving.signal);
    const waiting = bodies.prepare('chat', chatBody('c'));
    leaving.abort();
    await assert.rejects(left, isCode('cancelled'));
    await assert.rejects(bodies.prepare('chat', chatBody('d'), leaving.signal), isCode('cancelled'));
    const inItsPlace = bodies.prepare('chat', chatBody('e'));
    await Promise.all([running, waiting, inItsPlace]);
  });

  it('answers 503 to everything once it is closed', async () => {
    const bodies = largeBodies();
    const both = [bodies.prepare('chat', chatBody('a')), bodies.prepare('chat', chatBody('b'))];
    const refused = both.map((body) => assert.rejects(body, isCode('service_unavailable')));
    await bodies.close();
    await Promise.all(refused);
    await assert.rejects(bodies.prepare('chat', chatBody('c')), isCode('service_unavailable'));
  });
});
