import assert from 'node:assert/strict';
import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import { describe, it } from 'node:test';
import { ApiError } from '../../../shared/errors.ts';
import type { Offering } from '../../../workers/vendors/vendor.ts';
import { type Answer, callOf, collect } from './fixture-vendor.ts';
import { VendorBench } from './vendor-bench.ts';

/** What one vendor's server says, and what has to come of it. */
export interface ChatVendor {
  create(baseUrl: string): Offering<'chat'>;
  /** Streamed answers by what is special about them, the data of their frames, and their usage. */
  readonly streams: Readonly<Record<string, { send: Answer; data: unknown[]; usage: unknown }>>;
  readonly held: { send: Answer; body: unknown; usage: unknown };
  /** A streamed answer that breaks off after its first frames. */
  readonly sendBroken: Answer;
}

/** What every vendor of chat must do, whatever it speaks on its own side. */
export function describeChatVendor(name: string, wire: ChatVendor): void {
  describe(`${name} keeps the contract of a chat vendor`, () => {
    const bench = new VendorBench(wire.create);

    for (const [recording, { send, data, usage }] of Object.entries(wire.streams)) {
      it(`${name} streams ${recording} as delta frames, and resolves with the usage`, async () => {
        bench.server.answer(send);
        const sink = collect();
        const end = await bench.vendor.chat(callOf(), sink);
        assert.deepEqual(sink.data(), data);
        assert.deepEqual(new Set(sink.frames.map((frame) => frame.type)), new Set(['delta']));
        assert.deepEqual(end, { body: JSON.stringify({ usage }), usage, tier: tierIn(data) });
      });
    }

    it(`${name} answers a held call with the whole body and no frame`, async () => {
      bench.server.answer(wire.held.send);
      const sink = collect();
      const end = await bench.vendor.chat(callOf({ stream: false }), sink);
      assert.deepEqual(JSON.parse(end.body), wire.held.body);
      assert.deepEqual([end.usage, end.tier], [wire.held.usage, tierIn([wire.held.body])]);
      assert.equal(sink.frames.length, 0);
    });

    it(`${name} fails with stream_interrupted when the answer breaks off after its first frames`, async () => {
      bench.server.answer(wire.sendBroken);
      const sink = collect();
      await assert.rejects(bench.vendor.chat(callOf(), sink), { name: 'ApiError', code: 'stream_interrupted' });
      assert.ok(sink.frames.length > 0);
    });

    for (const stream of [true, false]) {
      it(`${name} closes the connection when a ${stream ? 'streamed' : 'held'} call is aborted before the first byte`, async () => {
        const asked = new Promise<ServerResponse>((resolve) => bench.server.answer(resolve));
        const controller = new AbortController();
        const call = bench.vendor.chat(callOf({ stream, signal: controller.signal }), collect());
        const left = once(await asked, 'close');
        const reason = new ApiError('timeout', 'The deadline has passed.');
        controller.abort(reason);
        await assert.rejects(call, reason);
        await left;
      });
    }

    it(`${name} makes no call when the signal is already aborted`, async () => {
      bench.server.answer(wire.held.send);
      const asked = bench.server.requests.length;
      const call = bench.vendor.chat(callOf({ stream: false, signal: AbortSignal.abort() }), collect());
      await assert.rejects(call, { name: 'ApiError', code: 'cancelled' });
      assert.equal(bench.server.requests.length, asked);
    });
  });
}

/** The service tier that the last of these frames, or a body, names. */
export function tierIn(data: readonly unknown[]): string | undefined {
  return (data as { service_tier?: string }[]).findLast(({ service_tier: tier }) => tier != null)?.service_tier;
}
