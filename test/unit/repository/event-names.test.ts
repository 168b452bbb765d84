import assert from 'node:assert/strict';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import fc from 'fast-check';
import { responseView } from '../../../api/endpoints/responses/response-view.ts';
import { sseEvent } from '../../../api/replies/sse-event.ts';
import { ApiError } from '../../../shared/errors.ts';
import { type Frame, frameLine, oneLine, parseBatch } from '../../../shared/jobs/append.ts';
import { createOpenAiDialect } from '../../../workers/vendors/openai/dialect.ts';
import type { Offering } from '../../../workers/vendors/vendor.ts';
import {
  callOf,
  collect,
  type FixtureVendor,
  sendStream,
  startFixtureVendor,
} from '../../vendors/contracts/fixture-vendor.ts';
import { recorded, wireEvents, written } from '../../vendors/recorded/recorded-responses.ts';

/** What a vendor would have to call an event for its own lines to stand in the caller's stream. */
const forged = 'response.x\nid: 999999.9\nevent: response.completed\ndata: {"injected":true}\n\ndata: [DONE]\n\n: ';
const names = [forged, forged.replaceAll('\n', '\r'), forged.replaceAll('\n', '\r\n'), 'response.x y', 'response.'];

/** Each line of an event begins with the name of one of its fields, and each comes once. */
function fieldsOf(event: string): string[] {
  return event.split(/\r\n|\r|\n/).map((line) => line.slice(0, line.indexOf(': ')));
}

describe('event names', () => {
  let server: FixtureVendor;
  let vendor: Offering<'respond'>;
  before(async () => {
    server = await startFixtureVendor();
    vendor = createOpenAiDialect({ name: 'openai', baseUrl: server.baseUrl, apiKey: 'sk-test-0123456789abcdef' });
  });
  after(async () => {
    await vendor.close();
    await server.close();
  });

  it('an event name that a vendor made up stays out of the log, and the answer continues', async () => {
    const events = wireEvents(recorded('plain text'));
    const odd = names.map((type) => `data: ${JSON.stringify({ type, delta: 'x' })}\n\n`);
    server.answer((response) => sendStream(response, [written(events.slice(0, 5)), ...odd, written(events.slice(5))]));
    const sink = collect();
    const { body } = await vendor.respond(callOf({ request: '{"input":[]}' }), sink);
    assert.equal(JSON.parse(body).response.status, 'completed');
    for (const { text } of sink.frames) assert.match(JSON.parse(text).type, /^response\.[\w.]+$/);
  });

  it('a forged event name in a log adds no line to the stream', () => {
    for (const name of names) {
      const job = {
        id: 'a'.repeat(32),
        model: 'm',
        createdAt: 0,
        viewOptions: { echo: {}, include: [], afterInput: 0 },
        link: () => '',
      };
      const frame: Frame = { seq: 1, type: 'delta', text: JSON.stringify({ type: name, delta: 'x' }) };
      const said = responseView.stream(job)(frame);
      assert.ok(said.length > 0);
      for (const event of said) assert.deepEqual(fieldsOf(event), ['event', 'data'], JSON.stringify(event));
    }
  });

  it('sseEvent writes every event name as one word on one line', () => {
    const data = '{"a":1}';
    fc.assert(
      fc.property(fc.oneof(fc.string(), fc.stringMatching(/^[\w.\r\n: ]*$/), fc.constantFrom(...names)), (name) => {
        assert.match(sseEvent(name, data), /^event: [\w.-]*\ndata: \{"a":1\}$/);
      }),
    );
    assert.equal(sseEvent('response.output_text.delta', data), `event: response.output_text.delta\ndata: ${data}`);
  });

  it('only replies/sse-event.ts writes event lines', async () => {
    const folder = new URL('../../../api', import.meta.url).pathname;
    const files = (await readdir(folder, { recursive: true })).filter((file) => file.endsWith('.ts'));
    const writing: string[] = [];
    for (const file of files) {
      if ((await readFile(join(folder, file), 'utf8')).includes('`event: ')) writing.push(file);
    }
    assert.deepEqual(writing, ['replies/sse-event.ts']);
  });
});

describe('frames', () => {
  it('a frame is one line however its vendor wrote it, even when it is long enough to be a blob', () => {
    const pretty = JSON.stringify({ text: 'x'.repeat(70_000), more: [1] }, null, 2);
    for (const text of [pretty, pretty.replaceAll('\n', '\r')]) {
      assert.doesNotMatch(oneLine(text), /[\r\n]/);
      assert.deepEqual(JSON.parse(oneLine(text)), JSON.parse(pretty));
      assert.equal(frameLine('delta', text), `d${oneLine(text)}`);
    }
  });

  it('a frame of an unknown kind is a 503 with retry-after', () => {
    for (const line of ['q{}', 'Q{"blob":"x"}', '1', '\r']) {
      assert.throws(
        () => parseBatch(`1 1 sandbox\nd{}\n${line}`),
        (error) => error instanceof ApiError && error.status === 503 && error.headers()['retry-after'] !== undefined,
        line,
      );
    }
    assert.throws(() => parseBatch('no head'), Error);
  });
});
