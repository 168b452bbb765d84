import assert from 'node:assert/strict';
import type { ServerResponse } from 'node:http';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import type { Offering } from '../../../workers/vendors/vendor.ts';
import { describeChatVendor, tierIn } from './chat-vendor-contract.ts';
import { callOf, collect, cut, sendJson } from './fixture-vendor.ts';
import { VendorBench } from './vendor-bench.ts';

type Fields = Record<string, unknown>;

/** A vendor whose answers are lists of blocks: how it sends one, and what a chat makes of it. */
export interface TranslatedChat<Answer> {
  create(baseUrl: string): Offering<'chat'>;
  readonly model: string;
  /** Answers by what is special about them. One is `plain text`. */
  readonly recorded: Readonly<Record<string, Answer>>;
  /** The frames that a recorded answer has to become, its text in pieces of five characters. */
  framesOf(name: string): Fields[];
  /** An answer with everything that there is, and the body of a chat that it has to become. */
  readonly held: Answer;
  readonly heldBody: HeldBody;
  readonly toJson: (answer: Answer) => string;
  /** The events of an answer, its text in pieces of `size` characters. */
  readonly toEvents: (answer: Answer, size?: number) => Buffer[];
  readonly contentType: string;
  /** Ways to write the same bytes otherwise. */
  readonly spellings?: readonly ((bytes: Buffer) => Buffer)[];
  /** Any answer. */
  readonly answers: fc.Arbitrary<Answer>;
}

/** A whole chat completion with calls of tools, without what the gateway adds. */
export interface HeldBody {
  readonly choices: [HeldChoice];
  readonly usage: Fields;
  readonly service_tier: string;
}

type HeldChoice = { logprobs: null; message: { tool_calls: object[] } & Fields } & Fields;

/** What every vendor must do whose answers are lists of blocks, beside the contract of a chat vendor. */
export function describeTranslatedChat<Answer>(name: string, wire: TranslatedChat<Answer>): void {
  const { recorded, model, held, toJson, toEvents, contentType } = wire;
  const { usage } = wire.heldBody;
  const counted = { body: JSON.stringify({ usage }), usage };
  const sendParts = (parts: readonly Uint8Array[]) => (response: ServerResponse) => {
    response.writeHead(200, { 'content-type': contentType });
    response.flushHeaders();
    for (const part of parts) if (part.length > 0) response.write(part);
    response.end();
  };
  const sendHeld = (answer: Answer) => (response: ServerResponse) => sendJson(response, 200, toJson(answer));
  const plain = recorded['plain text'] ?? assert.fail();

  describeChatVendor(name, {
    create: wire.create,
    streams: Object.fromEntries(
      Object.entries(recorded).map(([recording, answer]) => {
        return [recording, { send: sendParts(toEvents(answer)), data: wire.framesOf(recording), usage }];
      }),
    ),
    held: { send: sendHeld(held), body: wire.heldBody, usage },
    sendBroken: sendParts(toEvents(plain).slice(0, 4)),
  });

  describe(`${name} keeps the contract of a translated chat`, () => {
    const bench = new VendorBench(wire.create);

    const stream = async (...parts: Uint8Array[]) => {
      bench.server.answer(sendParts(parts));
      const sink = collect();
      return { end: await bench.vendor.chat(callOf({ model }), sink), sink };
    };

    it(`${name} yields the same frames however the bytes of an answer are split`, async () => {
      const names = fc.constantFrom(...Object.keys(recorded));
      const spellings = fc.constantFrom((bytes: Buffer) => bytes, ...(wire.spellings ?? []));
      const at = fc.array(fc.nat(), { maxLength: 40 });
      await fc.assert(
        fc.asyncProperty(names, spellings, at, async (recording, spell, places) => {
          const bytes = spell(Buffer.concat(toEvents(recorded[recording] as Answer)));
          const { sink, end } = await stream(...cut(bytes, places));
          assert.deepEqual(sink.data(), wire.framesOf(recording));
          assert.deepEqual(end, { ...counted, tier: tierIn(sink.data()) });
        }),
        { numRuns: 150 },
      );
      const bytes = Buffer.concat(toEvents(plain));
      const { sink } = await stream(...cut(bytes, [...bytes.keys()]));
      assert.deepEqual(sink.data(), wire.framesOf('plain text'));
    });

    it(`${name} streams add up to the held answer, whatever the message`, async () => {
      await fc.assert(
        fc.asyncProperty(wire.answers, fc.integer({ min: 1, max: 9 }), async (answer, size) => {
          const { sink, end } = await stream(...toEvents(answer, size));
          bench.server.answer(sendHeld(answer));
          const whole = await bench.vendor.chat(callOf({ stream: false, model }), collect());
          const [{ index: _index, logprobs: _logprobs, message, ...finish }] = JSON.parse(whole.body).choices;
          const streamed = addUp(sink.data());
          // A stream tells by its order what stands before a thought.
          delete message.thinking_offsets;
          assert.equal(message.refusal, null);
          delete message.refusal;
          // Text of no characters is no delta.
          assert.deepEqual(
            { ...streamed, content: streamed.content ?? '' },
            { ...message, content: message.content ?? '', ...finish },
          );
          assert.deepEqual(end.usage, whole.usage);
        }),
        { numRuns: 150 },
      );
    });

    it(`${name} turns a whole answer to a streamed request into one frame`, async () => {
      bench.server.answer(sendHeld(held));
      const sink = collect();
      const end = await bench.vendor.chat(callOf({ model }), sink);
      const [{ logprobs: _logprobs, message: heldMessage, ...choice }] = wire.heldBody.choices;
      const { refusal: _refusal, ...message } = heldMessage;
      const delta = { ...message, tool_calls: message.tool_calls.map((each, index) => ({ index, ...each })) };
      const { service_tier } = wire.heldBody;
      assert.deepEqual(sink.data(), [{ choices: [{ ...choice, delta }], service_tier }]);
      assert.deepEqual(end, { ...counted, tier: tierIn(sink.data()) });
    });

    it(`${name} ends with its last event, without waiting for what the vendor may still send`, async () => {
      let answered: ServerResponse | undefined;
      bench.server.answer((response) => {
        answered = response;
        response.writeHead(200, { 'content-type': contentType });
        response.write(Buffer.concat([...toEvents(held), ...toEvents(plain)]));
      });
      const sink = collect();
      const end = await bench.vendor.chat(callOf({ model }), sink);
      assert.deepEqual(addUp(sink.data()).content, wire.heldBody.choices[0].message.content);
      assert.deepEqual(end, { ...counted, tier: tierIn(sink.data()) });
      answered?.end();
    });

    it(`${name} reports a usage of null when the vendor counts nothing`, async () => {
      const { usage: _usage, ...uncounted } = plain as Fields;
      bench.server.answer((response) => sendJson(response, 200, toJson(uncounted as Answer)));
      const end = await bench.vendor.chat(callOf({ stream: false, model }), collect());
      assert.equal(end.usage, null);
      assert.equal(JSON.parse(end.body).usage ?? null, null);
    });
  });
}

/** The message that the deltas of a stream add up to, as clients add them up. */
export function addUp(frames: readonly unknown[]): Fields {
  const message: Fields = { content: null };
  const calls: { id?: string; type?: string; function: { name?: string; arguments: string } }[] = [];
  for (const frame of frames) {
    const [{ delta, finish_reason }] = (frame as { choices: [{ delta: Fields; finish_reason: unknown }] }).choices;
    for (const [name, value] of Object.entries(delta)) {
      if (name === 'tool_calls') {
        const [{ index, ...piece }] = value as [{ index: number } & (typeof calls)[number]];
        const before = calls[index];
        if (before) before.function.arguments += piece.function.arguments;
        else calls[index] = structuredClone(piece);
      } else if (Array.isArray(value)) {
        message[name] = [...((message[name] as unknown[]) ?? []), ...value];
      } else {
        message[name] = `${message[name] ?? ''}${value}`;
      }
    }
    message.finish_reason = finish_reason;
  }
  return { ...message, ...(calls.length > 0 && { tool_calls: calls }) };
}
