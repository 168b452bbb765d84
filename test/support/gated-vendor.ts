import type { ServerResponse } from 'node:http';
import {
  beginStream,
  type FixtureVendor,
  type ReceivedRequest,
  sendJson,
  startFixtureVendor,
} from '../vendors/contracts/fixture-vendor.ts';
import type { Configuration } from './gateway.ts';

/** The words of every answer; a stream has the first half of them before it waits, but for one of `gated-whole`. */
const words = Array.from({ length: 20 }, (_, index) => `word${index + 1}`);

/** The text of every answer. */
export const gatedText = words.join(' ');

const usage = { prompt_tokens: 10, completion_tokens: words.length, total_tokens: 10 + words.length };

/** A call of the vendor that waits for its release. */
export interface GatedCall {
  /** The request's `user`. */
  readonly user: string;
  /** How it ended; undefined: it has not. `aborted`: its client closed the connection before. */
  ended: 'answered' | 'failed' | 'aborted' | undefined;
  /** Sends the answer, or the rest of it. */
  release(): void;
  /** Answers with an error; only of a call that is not streamed. */
  fail(status: number): void;
}

/** A vendor of OpenAI's wire whose answers wait until a test releases them, so that a test decides what happens before. */
export class GatedVendor {
  readonly calls: GatedCall[] = [];
  readonly #server: FixtureVendor;

  private constructor(server: FixtureVendor) {
    this.#server = server;
    server.answer((response, request) => this.#receive(response, request));
  }

  static async start(): Promise<GatedVendor> {
    return new GatedVendor(await startFixtureVendor());
  }

  /** The operator's file that makes it the vendor of the models `gated`, `gated-too` and, whose streams are silent before the release, `gated-whole`. */
  get configuration(): Configuration {
    const model = {
      capability: 'chat' as const,
      prices: { input: 1, output: 2 },
      routes: [{ vendor: 'gate', model: 'gated' }],
    };
    const whole = { ...model, routes: [{ vendor: 'gate', model: 'gated-whole' }] };
    return {
      routing: { attempts: 1 },
      vendors: { gate: { like: 'openai', base_url: this.#server.baseUrl, api_keys: ['any'] } },
      models: { gated: model, 'gated-too': model, 'gated-whole': whole },
    };
  }

  callsOf(user: string): GatedCall[] {
    return this.calls.filter((call) => call.user === user);
  }

  close(): Promise<void> {
    return this.#server.close();
  }

  #receive(response: ServerResponse, { body }: ReceivedRequest): void {
    const { user = '', stream, model } = JSON.parse(body) as { user?: string; stream?: boolean; model: string };
    const isWhole = model === 'gated-whole';
    const call: GatedCall = {
      user,
      ended: undefined,
      release: () => {
        if (call.ended !== undefined) return;
        call.ended = 'answered';
        if (!stream) sendJson(response, 200, JSON.stringify(completion()));
        else {
          if (isWhole) beginAnswer(response);
          endAnswer(response);
        }
      },
      fail: (status) => {
        call.ended = 'failed';
        sendJson(response, status, '{"error":{"message":"The gate fails it."}}');
      },
    };
    response.once('close', () => {
      call.ended ??= 'aborted';
    });
    this.calls.push(call);
    if (stream && !isWhole) beginAnswer(response);
  }
}

function completion(): object {
  const message = { role: 'assistant', content: gatedText };
  return {
    ...{ id: 'chatcmpl-1', object: 'chat.completion', created: 1, model: 'gated', usage },
    choices: [{ index: 0, message, finish_reason: 'stop', logprobs: null }],
  };
}

function chunk(delta: object, more: object = {}, finish: string | null = null): string {
  const choices = [{ index: 0, delta, finish_reason: finish }];
  const body = { id: 'chatcmpl-1', object: 'chat.completion.chunk', created: 1, model: 'gated', choices, ...more };
  return `data: ${JSON.stringify(body)}\n\n`;
}

/** Sends the first half of a stream. */
function beginAnswer(response: ServerResponse): void {
  beginStream(response);
  for (const [index, word] of words.slice(0, words.length / 2).entries()) {
    response.write(chunk({ content: index === 0 ? word : ` ${word}` }));
  }
}

/** Sends the rest of it. */
function endAnswer(response: ServerResponse): void {
  for (const word of words.slice(words.length / 2)) response.write(chunk({ content: ` ${word}` }));
  response.write(chunk({}, {}, 'stop'));
  response.write(chunk({}, { choices: [], usage }));
  response.end('data: [DONE]\n\n');
}
