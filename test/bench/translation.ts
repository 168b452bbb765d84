/** What one streamed chunk costs in the vendors' dialects: the adapters alone, with their bytes from memory. */
import type { HttpClient, HttpPost } from '../../workers/http/http-client.ts';
import { anthropicChat } from '../../workers/vendors/anthropic/chat.ts';
import { AnthropicErrors } from '../../workers/vendors/anthropic/errors.ts';
import { GeminiAnswerReader } from '../../workers/vendors/gemini/answer-reader.ts';
import { geminiChat } from '../../workers/vendors/gemini/chat.ts';
import { OpenAiAnswerReader } from '../../workers/vendors/openai/answer-reader.ts';
import { openAiChat } from '../../workers/vendors/openai/chat.ts';
import type { FrameSink, VendorCall, VendorMethod } from '../../workers/vendors/vendor.ts';
import { median } from './statistics.ts';

const tokens = 2000;
const streamsPerRound = 60;
const key = 'a-key-of-the-bench';

interface Dialect {
  readonly name: string;
  readonly chat: VendorMethod;
}

/** What a chunk costs in one dialect. */
export interface TranslationFigure {
  readonly name: string;
  /** Microseconds of CPU per chunk, median of the rounds. */
  readonly cpu: number;
  /** The same over the raw dialect's of the same round, median. */
  readonly ratio: number;
}

const usage = { prompt_tokens: 9, completion_tokens: tokens, total_tokens: tokens + 9 };
const words = Array.from({ length: tokens }, (_, index) => `word${index} `);

function openAiEvents(): string[] {
  const head = { id: 'chatcmpl-1', object: 'chat.completion.chunk', created: 1, model: 'm', system_fingerprint: 'fp' };
  const chunk = (delta: object, finish: string | null = null) =>
    `data: ${JSON.stringify({ ...head, choices: [{ index: 0, delta, logprobs: null, finish_reason: finish }] })}\n\n`;
  return [
    chunk({ role: 'assistant', content: '' }),
    ...words.map((content) => chunk({ content })),
    chunk({}, 'stop'),
    `data: ${JSON.stringify({ ...head, choices: [], usage })}\n\n`,
    'data: [DONE]\n\n',
  ];
}

function anthropicEvents(): string[] {
  const event = (value: { type: string }) => `event: ${value.type}\ndata: ${JSON.stringify(value)}\n\n`;
  const message = { id: 'msg_1', type: 'message', role: 'assistant', model: 'm', content: [], stop_reason: null };
  return [
    event({ type: 'message_start', message: { ...message, usage: { input_tokens: 9, output_tokens: 1 } } } as never),
    event({ type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } } as never),
    ...words.map((text) =>
      event({ type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text } } as never),
    ),
    event({ type: 'content_block_stop', index: 0 } as never),
    event({ type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage: { output_tokens: tokens } } as never),
    event({ type: 'message_stop' }),
  ];
}

function geminiEvents(): string[] {
  const counts = { promptTokenCount: 9, candidatesTokenCount: tokens, totalTokenCount: tokens + 9 };
  const event = (text: string, said: number, finish: object = {}) => {
    const content = { parts: [{ text }], role: 'model' };
    const candidates = [{ content, index: 0, ...finish }];
    return `data: ${JSON.stringify({ candidates, usageMetadata: { ...counts, candidatesTokenCount: said }, modelVersion: 'm', responseId: 'r' })}\r\n\r\n`;
  };
  return [...words.map((word, index) => event(word, index)), event('', tokens, { finishReason: 'STOP' })];
}

/** An HTTP client that answers every post with these events, a chunk each. */
function answering(events: readonly string[]): HttpClient {
  const chunks = events.map((event) => Buffer.from(event));
  const post = async ({ onChunk }: HttpPost): Promise<null> => {
    for (const chunk of chunks) await onChunk?.(chunk, 'text/event-stream');
    return null;
  };
  const never = () => Promise.reject(new Error('the bench only posts'));
  const others = { postForBytes: never, get: never, put: never, delete: never };
  return { post, ...others, close: () => Promise.resolve() } as HttpClient;
}

const dialects: readonly Dialect[] = [
  { name: 'openai', chat: openAiChat(answering(openAiEvents()), new OpenAiAnswerReader('bench', key)) },
  { name: 'anthropic', chat: anthropicChat(answering(anthropicEvents()), new AnthropicErrors('bench', key)) },
  {
    name: 'gemini',
    chat: geminiChat(answering(geminiEvents()), new GeminiAnswerReader('bench', key), async () => {
      throw new Error('the bench downloads nothing');
    }),
  },
];

/** Microseconds of CPU per chunk, over some streams. */
async function cpuPerChunk({ name, chat }: Dialect, streams: number): Promise<number> {
  let frames = 0;
  const sink: FrameSink = {
    write: () => {
      frames += 1;
      return true;
    },
    drained: () => Promise.resolve(),
  };
  const call: VendorCall = {
    model: 'm',
    stream: true,
    request: '{"messages":[{"role":"user","content":"hi"}]}',
    signal: new AbortController().signal,
    silenceMs: 1000,
    uploads: [],
    files: { open: () => Promise.reject(new Error('no files')), save: () => Promise.reject(new Error('no files')) },
  };
  const before = process.cpuUsage();
  for (let stream = 0; stream < streams; stream++) await chat(call, sink);
  const { user, system } = process.cpuUsage(before);
  if (frames < tokens * streams) throw new Error(`${name}: ${frames} frames of ${tokens * streams}`);
  return (user + system) / (tokens * streams);
}

/** Measures all dialects in turns, so that what slows the machine slows each. */
export async function measureTranslations(rounds: number): Promise<TranslationFigure[]> {
  for (const dialect of dialects) await cpuPerChunk(dialect, streamsPerRound);
  const figures = dialects.map(() => [] as number[]);
  for (let round = 0; round < rounds; round++) {
    for (const [index, dialect] of dialects.entries()) {
      figures[index]?.push(await cpuPerChunk(dialect, streamsPerRound));
    }
  }
  const raw = figures[0] as number[];
  return dialects.map(({ name }, index) => {
    const own = figures[index] as number[];
    return { name, cpu: median(own), ratio: median(own.map((value, round) => value / (raw[round] as number))) };
  });
}
