import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { ApiError } from '../../shared/errors.ts';
import type { Offering } from '../../workers/vendors/vendor.ts';
import { callOf, collect } from './fixture-vendor.ts';

/** How a suite gets one vendor's server to say what the contract is about. */
export interface ChatVendorFixture {
  readonly vendor: Offering<'chat'>;
  /** The frames' data and the usage that the next streamed call has to yield, by the name of the recorded answer. */
  readonly streams: Readonly<Record<string, { arrange(): void; data: unknown[]; usage: unknown }>>;
  readonly held: { arrange(): void; body: unknown; usage: unknown };
  /** The next calls get an answer that breaks off after its first frames. */
  arrangeBreak(): void;
  /** The next calls are never answered; `left` resolves when the vendor sees its connection closed. */
  arrangeNothing(): { asked: Promise<unknown>; left: Promise<unknown> };
  close(): Promise<void>;
}

/** What every vendor of chat must do, whatever it speaks on its own side. */
export function describeChatVendor(
  name: string,
  recorded: readonly string[],
  open: () => Promise<ChatVendorFixture>,
): void {
  describe(`${name} keeps the contract of a chat vendor`, () => {
    let fixture: ChatVendorFixture;
    before(async () => {
      fixture = await open();
    });
    after(() => fixture.close());

    for (const recording of recorded) {
      it(`streams ${recording} as delta frames, and resolves with the usage`, async () => {
        const stream = fixture.streams[recording];
        assert.ok(stream);
        stream.arrange();
        const sink = collect();
        const end = await fixture.vendor.chat(callOf(), sink);
        assert.deepEqual(sink.data(), stream.data);
        assert.deepEqual(new Set(sink.frames.map((frame) => frame.type)), new Set(['delta']));
        assert.deepEqual(end, { body: JSON.stringify({ usage: stream.usage }), usage: stream.usage });
      });
    }

    it('answers a held call with the whole body and no frame', async () => {
      fixture.held.arrange();
      const sink = collect();
      const end = await fixture.vendor.chat(callOf({ stream: false }), sink);
      assert.deepEqual(JSON.parse(end.body), fixture.held.body);
      assert.deepEqual(end.usage, fixture.held.usage);
      assert.equal(sink.frames.length, 0);
    });

    it('fails with stream_interrupted when the answer breaks off after its first frames', async () => {
      fixture.arrangeBreak();
      const sink = collect();
      await assert.rejects(fixture.vendor.chat(callOf(), sink), { name: 'ApiError', code: 'stream_interrupted' });
      assert.ok(sink.frames.length > 0);
    });

    for (const stream of [true, false]) {
      it(`closes the vendor's connection when a ${stream ? 'streamed' : 'held'} call is aborted before the first byte`, async () => {
        const { asked, left } = fixture.arrangeNothing();
        const controller = new AbortController();
        const call = fixture.vendor.chat(callOf({ stream, signal: controller.signal }), collect());
        await asked;
        const reason = new ApiError('timeout', 'The deadline has passed.');
        controller.abort(reason);
        await assert.rejects(call, reason);
        await left;
      });
    }

    it('asks nothing of the vendor when the call is aborted already', async () => {
      fixture.held.arrange();
      const call = fixture.vendor.chat(callOf({ stream: false, signal: AbortSignal.abort() }), collect());
      await assert.rejects(call, { name: 'ApiError', code: 'cancelled' });
    });
  });
}
