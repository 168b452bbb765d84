import assert from 'node:assert/strict';
import type { ServerResponse } from 'node:http';
import { describe, it } from 'node:test';
import type { ApiError } from '../../../shared/errors.ts';
import type { FrameSink, Offering } from '../../../workers/vendors/vendor.ts';
import { sameFailureOf } from './failure-of.ts';
import { callOf, collect } from './fixture-vendor.ts';
import { VendorBench } from './vendor-bench.ts';

/** A vendor of chat, and how it streams an answer. */
export interface FaultyChat {
  create(baseUrl: string): Offering<'chat'>;
  /** What nobody but the operator may see. */
  readonly secrets: readonly string[];
  readonly contentType: string;
  /** The events of a whole answer, each of which says one thing or nothing. The first three make a frame. */
  readonly events: readonly (string | Uint8Array)[];
}

/** Calls of a chat that have to fail alike: streamed, held and, where the vendor counts, counted. */
export function chatCalls(vendor: Offering<'chat'>, silenceMs = 20_000): (() => Promise<unknown>)[] {
  const { countTokens } = vendor;
  return [
    () => vendor.chat(callOf({ silenceMs }), collect()),
    () => vendor.chat(callOf({ stream: false, silenceMs }), collect()),
    ...(countTokens ? [() => countTokens(callOf({ stream: false, silenceMs }), collect())] : []),
  ];
}

/** What every vendor of chat has to bear whose connection, or whose reader, fails. */
export function describeChatFaults(name: string, { create, secrets, contentType, events }: FaultyChat): void {
  describe(`${name} with failing connections and readers`, () => {
    const bench = new VendorBench(create);

    /** The error of all calls, where the server answers like this. */
    const errorOf = (answer: (response: ServerResponse) => void, silenceMs = 20_000): Promise<ApiError> => {
      bench.server.answer(answer);
      return sameFailureOf(chatCalls(bench.vendor, silenceMs), secrets);
    };
    const begin = (response: ServerResponse, parts: readonly (string | Uint8Array)[]): void => {
      response.writeHead(200, { 'content-type': contentType });
      response.flushHeaders();
      for (const part of parts) response.write(part);
    };
    const stay = (response: ServerResponse): void => begin(response, events.slice(0, 3));

    it(`${name} chat is a 500 when the connection breaks before the headers, and an interruption after a frame`, async () => {
      assert.equal((await errorOf((response) => response.socket?.resetAndDestroy())).code, 'server_error');
      assert.equal((await errorOf((response) => response.socket?.end())).code, 'server_error');
      bench.server.answer(stay);
      const sink = collect();
      const breaking: FrameSink = {
        drained: sink.drained,
        write: (frame) => {
          bench.server.reset();
          return sink.write(frame);
        },
      };
      await assert.rejects(bench.vendor.chat(callOf(), breaking), { code: 'stream_interrupted' });
      assert.ok(sink.frames.length > 0);
    });

    it(`${name} chat is a timeout when the vendor falls silent before, after or inside the answer`, async () => {
      assert.equal((await errorOf(() => {}, 100)).code, 'timeout');
      assert.equal((await errorOf((response) => begin(response, []), 100)).code, 'timeout');
      bench.server.answer(stay);
      const sink = collect();
      await assert.rejects(bench.vendor.chat(callOf({ silenceMs: 100 }), sink), { code: 'timeout' });
      assert.ok(sink.frames.length > 0);
    });

    it(`${name} chat stops reading while the sink is full, and delivers every frame`, async () => {
      bench.server.answer((response) => {
        begin(response, events);
        response.end();
      });
      const whole = collect();
      await bench.vendor.chat(callOf(), whole);
      const steps: string[] = [];
      const slow = collect();
      const sink: FrameSink = {
        write: (frame) => {
          steps.push('write');
          slow.write(frame);
          return false;
        },
        drained: async () => {
          await new Promise(setImmediate);
          steps.push('drained');
        },
      };
      await bench.vendor.chat(callOf(), sink);
      assert.deepEqual(steps.slice(0, 4), ['write', 'drained', 'write', 'drained']);
      assert.deepEqual(slow.frames, whole.frames);
    });
  });
}
