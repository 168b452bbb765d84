import { fieldsOf, numberOf, objectsOf } from '../../../shared/capabilities/vendor-values.ts';
import type { Frame } from '../../../shared/jobs/append.ts';
import { addAll } from '../../../shared/runtime/collections.ts';

type Fields = Record<string, unknown>;

interface FoldedChoice extends Fields {
  index: number;
  message: Fields;
  finish_reason: unknown;
  logprobs: { content: unknown[] | null; refusal: unknown[] | null } | null;
}

/** A choice while it streams, with its tool calls by index, and the end of its speech. */
interface GrowingChoice {
  readonly choice: FoldedChoice;
  readonly toolCalls: Map<number, Fields>;
  /** The last characters of the speech's base64, while they are padded: more follows in their place. */
  padded: string;
}

/**
 * Folds the chunks of a streamed chat into the body of a chat completion without its envelope. Text is concatenated, tool
 * calls are joined by index; unknown fields of a delta are concatenated if they are text or lists and replaced otherwise, those of
 * a choice keep their last non-null value.
 */
export function foldChatCompletion(frames: readonly Frame[]): Fields {
  const choices = new Map<number, GrowingChoice>();
  // Filled, never copied: a vendor may send fields of ever new names, and each chunk would cost a copy of all.
  const rest = new Map<string, unknown>();
  for (const frame of frames) {
    const { choices: changed, ...fields } = JSON.parse(frame.text) as Fields & { choices?: Fields[] };
    if (frame.type !== 'delta' && frame.type !== 'end') continue;
    for (const [name, value] of Object.entries(fields)) rest.set(name, value);
    for (const choice of objectsOf(changed)) foldChoice(choices, choice);
  }
  const folded = [...choices.values()].map(({ choice, toolCalls, padded }) => {
    const { message } = choice;
    if (toolCalls.size > 0) message.tool_calls = [...toolCalls.values()];
    if (padded !== '') message.audio = withData(fieldsOf(message.audio), padded);
    return choice;
  });
  return { choices: folded.sort((one, other) => one.index - other.index), ...Object.fromEntries(rest) };
}

/** Converts a folded choice to one chunk; folding that chunk results in the choice again. */
export function chatChunkChoice({ message, ...choice }: Fields): Fields {
  const { tool_calls: calls, ...delta } = (message ?? {}) as Fields & { tool_calls?: Fields[] };
  const toolCalls = calls?.map((call, index) => ({ index, ...call }));
  return { ...choice, delta: toolCalls === undefined ? delta : { ...delta, tool_calls: toolCalls } };
}

function foldChoice(choices: Map<number, GrowingChoice>, change: Fields): void {
  const index = numberOf(change.index);
  let growing = choices.get(index);
  if (growing === undefined) {
    const message: Fields = { role: 'assistant', content: null, refusal: null };
    growing = { choice: { index, message, finish_reason: null, logprobs: null }, toolCalls: new Map(), padded: '' };
    choices.set(index, growing);
  }
  const { choice } = growing;
  foldMessage(growing, fieldsOf(change.delta));
  if (change.finish_reason != null) choice.finish_reason = change.finish_reason;
  if (change.logprobs != null) foldLogprobs(choice, change.logprobs as Fields);
  for (const [name, value] of Object.entries(change)) {
    if (value != null && !ownFields.has(name)) choice[name] = value;
  }
}

/** Fields of a chunk's choice that are folded by themselves. */
const ownFields = new Set(['index', 'delta', 'finish_reason', 'logprobs']);

function foldMessage(growing: GrowingChoice, delta: Fields): void {
  const { choice, toolCalls } = growing;
  const { message } = choice;
  for (const [name, value] of Object.entries(delta)) {
    if (value === null || value === undefined || name === 'role') continue;
    const before = message[name];
    if (name === 'tool_calls') foldToolCalls(toolCalls, objectsOf(value));
    else if (name === 'function_call') message[name] = foldText((before ?? {}) as Fields, value);
    else if (name === 'audio') message[name] = foldAudio(growing, (before ?? {}) as Fields, value as Fields);
    else if (Array.isArray(value) && Array.isArray(before)) addAll(before, value);
    else message[name] = typeof value === 'string' && typeof before === 'string' ? before + value : value;
  }
}

/** Joins the pieces of a spoken answer: its transcript, and its data, of which each piece is base64 by itself. */
function foldAudio(growing: GrowingChoice, audio: Fields, { data, transcript, ...change }: Fields): Fields {
  for (const [name, value] of Object.entries(change)) audio[name] = value;
  if (typeof data === 'string') {
    const more = joinedBase64(growing.padded, data);
    const whole = more.endsWith('=') ? more.length - 4 : more.length;
    growing.padded = more.slice(whole);
    withData(audio, more.slice(0, whole));
  }
  if (typeof transcript === 'string') audio.transcript = String(audio.transcript ?? '') + transcript;
  return audio;
}

/** Adds to the data without looking at it: V8 would copy all of it for each piece. */
function withData(audio: Fields, more: string): Fields {
  audio.data = String(audio.data ?? '') + more;
  return audio;
}

function joinedBase64(padded: string, more: string): string {
  if (padded === '') return more;
  return Buffer.concat([Buffer.from(padded, 'base64'), Buffer.from(more, 'base64')]).toString('base64');
}

function foldToolCalls(calls: Map<number, Fields>, changes: Fields[]): void {
  for (const { index, ...change } of changes) {
    const call = calls.get(numberOf(index)) ?? {};
    calls.set(numberOf(index), call);
    for (const [name, value] of Object.entries(change)) {
      const isPart = name === 'function' || name === 'custom';
      if (isPart) call[name] = foldText((call[name] ?? {}) as Fields, value);
      else if (!isEmpty(value) || call[name] === undefined) call[name] = value;
    }
  }
}

/** Joins the text fields of a call's body: `arguments` and `input` arrive in pieces, the name whole. */
function foldText(target: Fields, change: unknown): Fields {
  for (const [name, value] of Object.entries((change ?? {}) as Fields)) {
    const before = target[name];
    if (isEmpty(value) && before !== undefined) continue;
    target[name] = typeof before === 'string' && typeof value === 'string' && name !== 'name' ? before + value : value;
  }
  return target;
}

/** Some vendors send these in later pieces instead of an id or a name. */
function isEmpty(value: unknown): boolean {
  return value === '' || value === null || value === undefined;
}

function foldLogprobs(choice: FoldedChoice, change: Fields): void {
  choice.logprobs ??= { content: null, refusal: null };
  for (const name of ['content', 'refusal'] as const) {
    const entries = change[name];
    if (!Array.isArray(entries)) continue;
    choice.logprobs[name] ??= [];
    addAll(choice.logprobs[name], entries);
  }
}
