import { readThoughtSignature } from '../../../shared/capabilities/thought-signature.ts';
import type { Frame } from '../../../shared/jobs/frames.ts';
import type { ViewedJob } from '../../replies/view.ts';
import { type SaidPiece, saidBy } from '../chat/said-pieces.ts';
import { MessageBlocks } from './message-blocks.ts';
import type { Message, MessageEvent, MessageStop, MessageUsage } from './message-events.ts';
import type { MessageViewOptions } from './parse-messages.ts';

type Fields = Record<string, unknown>;

/** Makes of the frames of a chat, from the first on, the events of a message. */
export class MessageFold {
  readonly #job: Pick<ViewedJob, 'id' | 'model'>;
  readonly #options: MessageViewOptions;
  readonly #blocks: MessageBlocks;
  #isStarted = false;
  #hasCalls = false;
  #isRefusal = false;
  #finishReason: unknown;
  #stopText: unknown;
  /** Thinking that nobody asked for, until a signature shows that its vendor wants it back. */
  #withheld = '';

  constructor(job: Pick<ViewedJob, 'id' | 'model'>, options: MessageViewOptions) {
    this.#job = job;
    this.#options = options;
    this.#blocks = new MessageBlocks(job.id);
  }

  /** The events that a frame becomes; none for errors and progress. */
  take(frame: Frame): MessageEvent[] {
    if (frame.type !== 'delta' && frame.type !== 'end') return [];
    const { choices, usage, service_tier: tier } = JSON.parse(frame.text) as Fields & { choices?: Fields[] };
    const events: MessageEvent[] = [];
    if (!this.#isStarted) {
      this.#isStarted = true;
      events.push({ type: 'message_start', message: this.#emptyMessage(tier) });
    }
    for (const choice of choices ?? []) {
      if (Number(choice.index ?? 0) !== 0) continue;
      // Perplexity has an empty delta beside the message of a whole answer.
      const said = frame.type === 'end' ? (choice.message ?? choice.delta) : (choice.delta ?? choice.message);
      events.push(...this.#takeChoice(choice, (said ?? {}) as Fields));
    }
    if (frame.type === 'end') {
      events.push(...this.#blocks.end());
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
      events.push(...this.#sayWithheld(piece), ...this.#blocks.say(piece));
    }
    if (choice.finish_reason == null) return events;
    this.#finishReason = choice.finish_reason;
    this.#stopText = choice.stop_reason;
    events.push(...this.#blocks.end());
    return events;
  }

  /** What a call is signed with is shown in any case: some of Google's models take no call back without it. */
  #isHidden(piece: SaidPiece): boolean {
    const { hidesThinking, keepsSignatures } = this.#options;
    if (!hidesThinking || !thoughts.has(piece.kind)) return false;
    if (piece.kind === 'thinking') return true;
    return !keepsSignatures && !(piece.kind === 'signature' && readThoughtSignature(piece.signature));
  }

  /** Only models of Anthropic's think unasked and sign it: all other thinking was not asked for, and has no use. */
  #isWithheld(piece: SaidPiece): boolean {
    if (this.#options.hidesUnsigned !== true || piece.kind !== 'thinking') return false;
    this.#withheld += piece.text;
    return true;
  }

  /** The thinking before a piece, where the piece signs it. */
  #sayWithheld(piece: SaidPiece): MessageEvent[] {
    const text = this.#withheld;
    this.#withheld = '';
    const isSigned = piece.kind === 'signature' && readThoughtSignature(piece.signature) === undefined;
    return isSigned && text !== '' ? this.#blocks.say({ kind: 'thinking', text }) : [];
  }

  #emptyMessage(tier: unknown): Message {
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
        ...toUsage(null),
        cache_creation: null,
        inference_geo: null,
        service_tier: tiers[String(tier)] ?? null,
        speed: null,
      },
    };
  }

  #stop(): MessageStop {
    const stop: MessageStop = { stop_reason: 'end_turn', stop_sequence: null, stop_details: null, container: null };
    if (this.#isRefusal || this.#finishReason === 'content_filter') {
      const details = { type: 'refusal', category: null, explanation: null } as const;
      return { ...stop, stop_reason: 'refusal', stop_details: details };
    }
    if (this.#finishReason === 'length') return { ...stop, stop_reason: 'max_tokens' };
    // Of a call that was forced some vendors say `stop`.
    if (this.#hasCalls) return { ...stop, stop_reason: 'tool_use' };
    // OpenAI does not tell a stop sequence from an end; vLLM and others name it.
    const text = this.#options.stopSequences.find((sequence) => sequence === this.#stopText);
    return text === undefined ? stop : { ...stop, stop_reason: 'stop_sequence', stop_sequence: text };
  }
}

const thoughts: ReadonlySet<string> = new Set(['thinking', 'signature', 'text signature', 'redacted']);

/** Service tiers as Anthropic calls them. */
const tiers: Readonly<Record<string, Message['usage']['service_tier']>> = {
  default: 'standard',
  priority: 'priority',
  flex: 'batch',
};

/** Counts of a chat; those that its vendor does not report are zero. */
function toUsage(usage: unknown): MessageUsage {
  const counts = (usage ?? {}) as Fields;
  const input = (counts.prompt_tokens_details ?? {}) as Fields;
  const output = (counts.completion_tokens_details ?? {}) as Fields;
  const prompt = count(counts.prompt_tokens);
  // Each token is told once, also where a vendor has counted it as read and as written.
  const read = Math.min(prompt, count(input.cached_tokens));
  // OpenRouter's name for it; OpenAI's own caches cost nothing to write.
  const written = Math.min(prompt - read, count(input.cache_write_tokens));
  const thinking = output.reasoning_tokens;
  return {
    input_tokens: prompt - read - written,
    cache_creation_input_tokens: written,
    cache_read_input_tokens: read,
    output_tokens: count(counts.completion_tokens),
    output_tokens_details: typeof thinking === 'number' ? { thinking_tokens: thinking } : null,
    server_tool_use: null,
    ...(counts.estimated === true && { estimated: true }),
  };
}

function count(value: unknown): number {
  return typeof value === 'number' ? value : 0;
}
