import { flatToolName } from '../../../shared/capabilities/flat-tool-name.ts';
import { readThoughtSignature } from '../../../shared/capabilities/thought-signature.ts';
import { fieldsOf, numberOf, objectsOf } from '../../../shared/capabilities/vendor-values.ts';
import type { Frame } from '../../../shared/jobs/append.ts';
import { addAll } from '../../../shared/runtime/collections.ts';
import type { ViewedJob } from '../../replies/view.ts';
import { type SaidPiece, saidBy } from '../chat/said-pieces.ts';
import { MessageBlocks } from './message-blocks.ts';
import type {
  CacheCreation,
  Message,
  MessageEvent,
  MessageStop,
  MessageUsage,
  RefusalDetails,
} from './message-events.ts';
import type { MessageViewOptions } from './parse-messages.ts';

type Fields = Record<string, unknown>;

/** Converts the frames of a chat, from the first on, to the events of a message. */
export class MessageFold {
  readonly #job: Pick<ViewedJob, 'id' | 'model'>;
  readonly #options: MessageViewOptions;
  readonly #blocks: MessageBlocks;
  /** The caller's names of tools by those under which vendors know them, where these differ. */
  readonly #names: ReadonlyMap<string, string>;
  #isStarted = false;
  #hasCalls = false;
  #isRefusal = false;
  #finishReason: unknown;
  #stopText: unknown;
  #stopDetails: unknown;
  /** Unrequested thinking, until a signature shows that its vendor wants it back. */
  #withheld = '';

  constructor(job: Pick<ViewedJob, 'id' | 'model'>, options: MessageViewOptions) {
    this.#job = job;
    this.#options = options;
    this.#blocks = new MessageBlocks(job.id);
    this.#names = new Map((options.longNames ?? []).map((name) => [flatToolName(undefined, name), name]));
  }

  /** Converts a frame to events; none for errors and progress. */
  take(frame: Frame): MessageEvent[] {
    if (frame.type !== 'delta' && frame.type !== 'end') return [];
    const { choices, usage, service_tier: tier } = JSON.parse(frame.text) as Fields & { choices?: Fields[] };
    const events: MessageEvent[] = [];
    if (!this.#isStarted) {
      this.#isStarted = true;
      events.push({ type: 'message_start', message: this.#emptyMessage(tier, frame.type === 'delta' ? usage : null) });
    }
    for (const choice of objectsOf(choices)) {
      if (numberOf(choice.index) !== 0) continue;
      // Perplexity sends an empty delta beside the message of a whole answer.
      const said = frame.type === 'end' ? (choice.message ?? choice.delta) : (choice.delta ?? choice.message);
      addAll(events, this.#takeChoice(choice, fieldsOf(said)));
    }
    if (frame.type === 'end') {
      addAll(events, this.#blocks.end());
      events.push({ type: 'message_delta', delta: this.#stop(), usage: toUsage(usage) }, { type: 'message_stop' });
    }
    return events;
  }

  #takeChoice(choice: Fields, said: Fields): MessageEvent[] {
    const events: MessageEvent[] = [];
    for (const piece of saidBy(said)) {
      if (piece.kind === 'call') this.#hasCalls = true;
      if (piece.kind === 'refusal') this.#isRefusal = true;
      if (this.#isHidden(piece) || this.#isWithheld(piece)) continue;
      addAll(events, this.#sayWithheld(piece));
      addAll(events, this.#blocks.say(this.#withOwnName(piece)));
    }
    if (choice.finish_reason == null) return events;
    this.#finishReason = choice.finish_reason;
    this.#stopText = choice.stop_reason;
    this.#stopDetails = choice.stop_details;
    addAll(events, this.#blocks.end());
    return events;
  }

  #withOwnName(piece: SaidPiece): SaidPiece {
    if (piece.kind !== 'call' || piece.name === undefined) return piece;
    const name = this.#names.get(piece.name);
    return name === undefined ? piece : { ...piece, name };
  }

  /** Signatures of calls are always shown: some of Google's models accept no call back without them. */
  #isHidden(piece: SaidPiece): boolean {
    const { hidesThinking, keepsSignatures } = this.#options;
    if (!hidesThinking || !thoughts.has(piece.kind)) return false;
    if (piece.kind === 'thinking') return true;
    return !keepsSignatures && !(piece.kind === 'signature' && readThoughtSignature(piece.signature));
  }

  /** Only Anthropic's models think unasked and sign it: other thinking was not requested, and is useless. */
  #isWithheld(piece: SaidPiece): boolean {
    if (this.#options.hidesUnsigned !== true || piece.kind !== 'thinking') return false;
    this.#withheld += piece.text;
    return true;
  }

  /** The withheld thinking before a piece, if the piece signs it. */
  #sayWithheld(piece: SaidPiece): MessageEvent[] {
    const text = this.#withheld;
    this.#withheld = '';
    const isSigned = piece.kind === 'signature' && readThoughtSignature(piece.signature) === undefined;
    return isSigned && text !== '' ? this.#blocks.say({ kind: 'thinking', text }) : [];
  }

  /** @param usage what the vendor has counted at the start, if it says so: the input. The output is counted at the end. */
  #emptyMessage(tier: unknown, usage: unknown): Message {
    return {
      id: `msg_${this.#job.id}`,
      type: 'message',
      role: 'assistant',
      model: this.#job.model,
      content: [],
      stop_reason: null,
      stop_sequence: null,
      stop_details: null,
      container: null,
      diagnostics: null,
      usage: {
        cache_creation: null,
        ...toUsage(usage),
        output_tokens: 0,
        output_tokens_details: null,
        inference_geo: null,
        service_tier: tiers.get(tier) ?? null,
        speed: null,
      },
    };
  }

  #stop(): MessageStop {
    const stop: MessageStop = { stop_reason: 'end_turn', stop_sequence: null, stop_details: null, container: null };
    if (this.#isRefusal || this.#finishReason === 'content_filter') {
      return { ...stop, stop_reason: 'refusal', stop_details: refusalDetails(this.#stopDetails) };
    }
    if (this.#finishReason === 'length') {
      return { ...stop, stop_reason: this.#stopText === windowExceeded ? windowExceeded : 'max_tokens' };
    }
    // Some vendors report `stop` for a forced call.
    if (this.#hasCalls) return { ...stop, stop_reason: 'tool_use' };
    // OpenAI does not distinguish a stop sequence from an end; vLLM and others report it.
    const text = this.#options.stopSequences.find((sequence) => sequence === this.#stopText);
    return text === undefined ? stop : { ...stop, stop_reason: 'stop_sequence', stop_sequence: text };
  }
}

/** Claude's name, which its adapters pass on. */
const windowExceeded = 'model_context_window_exceeded';

function refusalDetails(said: unknown): RefusalDetails {
  const { category, explanation } = fieldsOf(said);
  return {
    type: 'refusal',
    category: typeof category === 'string' ? category : null,
    explanation: typeof explanation === 'string' ? explanation : null,
  };
}

const thoughts: ReadonlySet<string> = new Set(['thinking', 'signature', 'text signature', 'redacted']);

/** Anthropic's names of service tiers. */
const tiers: ReadonlyMap<unknown, Message['usage']['service_tier']> = new Map([
  ['default', 'standard'],
  ['on_demand', 'standard'],
  ['priority', 'priority'],
  ['flex', 'batch'],
]);

/** Converts token counts of a chat; those that its vendor does not report are zero. */
function toUsage(usage: unknown): MessageUsage {
  const counts = (usage ?? {}) as Fields;
  const input = (counts.prompt_tokens_details ?? {}) as Fields;
  const output = (counts.completion_tokens_details ?? {}) as Fields;
  const prompt = count(counts.prompt_tokens);
  // Each token counts once, even if a vendor reports it as both read and written.
  const read = Math.min(prompt, count(input.cached_tokens));
  // OpenRouter's name; writing to OpenAI's own cache is free.
  const written = Math.min(prompt - read, count(input.cache_write_tokens));
  const thinking = output.reasoning_tokens;
  return {
    input_tokens: prompt - read - written,
    cache_creation_input_tokens: written,
    cache_read_input_tokens: read,
    output_tokens: count(counts.completion_tokens),
    output_tokens_details: typeof thinking === 'number' ? { thinking_tokens: thinking } : null,
    server_tool_use: null,
    ...cacheCreation(input.cache_creation_token_details),
    ...(counts.estimated === true && { estimated: true }),
  };
}

/** Tokens written to the cache by its lifetimes, if they are known. */
function cacheCreation(details: unknown): { readonly cache_creation?: CacheCreation } {
  if (typeof details !== 'object' || details === null) return {};
  const { ephemeral_5m_input_tokens: short, ephemeral_1h_input_tokens: long } = details as Fields;
  return { cache_creation: { ephemeral_5m_input_tokens: count(short), ephemeral_1h_input_tokens: count(long) } };
}

function count(value: unknown): number {
  return typeof value === 'number' ? value : 0;
}
