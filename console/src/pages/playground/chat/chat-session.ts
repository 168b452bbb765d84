import { RequestError } from '../../../api/request.ts';
import { brokenOff, call, isAbort, jobIdOf, messageOf } from '../playground-call.ts';
import { StateStore } from '../state-store.ts';
import { type ChatAnswer, emptyAnswer, type WireCompletion, withCompletion } from './chat-answer.ts';
import {
  type AssistantTurn,
  type ChatSettings,
  type ChatTurn,
  chatRequest,
  firstChatSettings,
} from './chat-request.ts';
import { readEvents } from './read-events.ts';

export interface ChatState {
  readonly settings: ChatSettings;
  readonly turns: readonly ChatTurn[];
  /** The message being typed, with its pictures. */
  readonly draft: string;
  readonly images: readonly string[];
  /** The results of tool calls being typed, by call id. */
  readonly results: Readonly<Record<string, string>>;
}

/** How often a growing answer is redrawn. */
const drawEveryMs = 50;

/** A chat: its form, its turns, and the answer in progress. */
export class ChatSession {
  readonly store = new StateStore<ChatState>({
    settings: firstChatSettings,
    turns: [],
    draft: '',
    images: [],
    results: {},
  });
  #running: AbortController | undefined;

  /** Adds turns and requests the next answer. Does nothing while one is in progress. */
  async send(...added: readonly ChatTurn[]): Promise<void> {
    if (this.#running !== undefined) return;
    const running = new AbortController();
    this.#running = running;
    const { settings, turns: before } = this.store.get();
    const turns = [...before, ...added];
    const turn = newAnswer(settings.model);
    this.store.set({ turns: [...turns, turn] });
    try {
      await this.#answer(chatRequest(settings, turns), running.signal);
      this.#change({ state: 'done' });
    } catch (error) {
      if (isAbort(error)) this.#change({ state: 'stopped' });
      else this.#change({ state: 'failed', error: messageOf(error), ...knownJob(error) });
    } finally {
      this.#change({ endedAt: Date.now() });
      this.#running = undefined;
    }
  }

  /** Stops the answer in progress; the received part stays. */
  stop(): void {
    this.#running?.abort();
  }

  /** Removes the last answer, and requests it again. */
  retry(): void {
    const { turns } = this.store.get();
    if (turns.at(-1)?.role !== 'assistant' || this.#running !== undefined) return;
    this.store.set({ turns: turns.slice(0, -1) });
    void this.send();
  }

  /** Starts a new conversation with the same settings. */
  clear(): void {
    if (this.#running === undefined) this.store.set({ turns: [] });
  }

  async #answer(body: Record<string, unknown>, signal: AbortSignal): Promise<void> {
    const response = await call('/v1/chat/completions', { json: body, signal });
    this.#change({ jobId: jobIdOf(response) });
    if (body.stream !== true || response.body === null) {
      this.#show(withCompletion(emptyAnswer, (await response.json()) as WireCompletion));
      return;
    }
    const isWhole = await this.#stream(response.body);
    signal.throwIfAborted();
    if (!isWhole) throw new Error(brokenOff);
  }

  /** Shows a streamed answer as it grows, and returns whether it was complete. A fast model writes more tokens than a page can draw. */
  async #stream(body: ReadableStream<Uint8Array>): Promise<boolean> {
    let answer = emptyAnswer;
    let timer: number | undefined;
    try {
      for await (const { data } of readEvents(body)) {
        if (data === '[DONE]') return true;
        const chunk = JSON.parse(data) as WireCompletion;
        if (chunk.error !== undefined) throw new Error(chunk.error.message);
        answer = withCompletion(answer, chunk);
        if (timer !== undefined) continue;
        this.#show(answer);
        timer = window.setTimeout(() => {
          timer = undefined;
          this.#show(answer);
        }, drawEveryMs);
      }
      return false;
    } finally {
      window.clearTimeout(timer);
      this.#show(answer);
    }
  }

  #show({ text, reasoning, toolCalls, finishReason }: ChatAnswer): void {
    const { turns } = this.store.get();
    const last = turns.at(-1);
    const isFirst = last?.role === 'assistant' && last.firstAt === undefined && (text !== '' || reasoning !== '');
    this.#change({ text, reasoning, toolCalls, finishReason, ...(isFirst && { firstAt: Date.now() }) });
  }

  /** Changes the last answer. */
  #change(change: Partial<AssistantTurn>): void {
    const { turns } = this.store.get();
    const at = turns.findLastIndex(({ role }) => role === 'assistant');
    this.store.set({ turns: turns.map((turn, index) => (index === at ? ({ ...turn, ...change } as ChatTurn) : turn)) });
  }
}

function newAnswer(model: string): AssistantTurn {
  return {
    role: 'assistant',
    text: '',
    reasoning: '',
    toolCalls: [],
    model,
    jobId: undefined,
    state: 'running',
    error: undefined,
    finishReason: undefined,
    startedAt: Date.now(),
    firstAt: undefined,
    endedAt: undefined,
  };
}

function knownJob(error: unknown): Partial<AssistantTurn> {
  return error instanceof RequestError && error.requestId !== undefined ? { jobId: error.requestId } : {};
}
