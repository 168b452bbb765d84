import { type CompletionRequest, defaultMaxTokens } from '../../shared/capabilities/completion.ts';
import { fieldsOf, numberOf, objectsOf } from '../../shared/capabilities/vendor-values.ts';
import { ApiError } from '../../shared/errors.ts';

type Fields = Record<string, unknown>;

/** The chat that implements the completion of one prompt: JSON text of a chat request. */
export function toChatRequest(job: CompletionRequest, prompt: string): string {
  const {
    prompt: _prompt,
    echo: _echo,
    suffix: _suffix,
    best_of: _bestOf,
    logprobs,
    max_tokens: maximum,
    ...rest
  } = job;
  return JSON.stringify({
    ...rest,
    messages: [{ role: 'user', content: prompt }],
    // The newer of its two names: OpenAI's reasoning models take no other.
    // Only the release before has queued jobs without a limit.
    max_completion_tokens: maximum ?? defaultMaxTokens,
    ...(logprobs != null && { logprobs: true, top_logprobs: logprobs }),
  });
}

/** A choice on the wire of legacy completions. */
interface CompletionChoice {
  readonly text: string;
  readonly index: number;
  readonly logprobs: CompletionLogprobs | null;
  readonly finish_reason: string | null;
}

interface CompletionLogprobs {
  readonly tokens: string[];
  readonly token_logprobs: unknown[];
  readonly top_logprobs: Record<string, unknown>[];
  readonly text_offset: number[];
}

/**
 * Translates one chat, whole or in chunks, into choices of a legacy completion. For each choice it remembers whether it has
 * started (an echo comes first) and the length of its text so far.
 */
export class ChatAsCompletion {
  readonly #prompt: string;
  readonly #echo: boolean;
  readonly #firstIndex: number;
  /** Characters before the next token, by the choice's index in the chat. */
  readonly #offsets = new Map<number, number>();

  /** @param firstIndex of this prompt's choices among those of all prompts. */
  constructor(job: CompletionRequest, prompt: string, firstIndex: number) {
    this.#prompt = prompt;
    this.#echo = job.echo === true;
    this.#firstIndex = firstIndex;
  }

  /** The choices of a whole chat completion. @throws ApiError when one has no message. */
  whole(body: string): CompletionChoice[] {
    const { choices } = JSON.parse(body) as Fields;
    return objectsOf(choices).map((choice) => {
      // A filter may have removed the message.
      if (choice.message == null && choice.finish_reason === 'content_filter') return this.#choice(choice, {});
      if (typeof choice.message !== 'object' || choice.message === null) {
        throw new ApiError('server_error', "The model's vendor answered with a choice that has no message.");
      }
      return this.#choice(choice, choice.message as Fields);
    });
  }

  /** A chat's chunk as the JSON text of a completion's, or undefined if it has nothing that a completion shows. */
  chunk(text: string): string | undefined {
    const { choices } = JSON.parse(text) as Fields;
    const shown = objectsOf(choices)
      .map((choice) => this.#choice(choice, fieldsOf(choice.delta)))
      .filter(hasOutput);
    return shown.length === 0 ? undefined : JSON.stringify({ choices: shown });
  }

  #choice(choice: Fields, message: Fields): CompletionChoice {
    const index = numberOf(choice.index);
    const isNew = !this.#offsets.has(index);
    if (isNew) this.#offsets.set(index, characters(this.#prompt));
    // A refusal is an answer too, and a completion has only one text.
    const text = [message.content, message.refusal].filter((part) => typeof part === 'string').join('');
    return {
      text: isNew && this.#echo ? this.#prompt + text : text,
      index: this.#firstIndex + index,
      logprobs: this.#logprobs(index, fieldsOf(choice.logprobs)),
      finish_reason: finishReason(choice.finish_reason),
    };
  }

  #logprobs(index: number, { content, refusal }: Fields): CompletionLogprobs | null {
    const tokens = [content, refusal].flatMap(objectsOf).filter(isTokenLogprob);
    if (tokens.length === 0) return null;
    const shown: CompletionLogprobs = { tokens: [], token_logprobs: [], top_logprobs: [], text_offset: [] };
    let offset = this.#offsets.get(index) ?? 0;
    for (const { token, logprob, top_logprobs: top } of tokens) {
      shown.tokens.push(token);
      shown.token_logprobs.push(logprob);
      const alternatives = objectsOf(top)
        .filter(isTokenLogprob)
        .map((other) => [other.token, other.logprob] as const);
      shown.top_logprobs.push({ [token]: logprob, ...Object.fromEntries(alternatives) });
      shown.text_offset.push(offset);
      offset += characters(token);
    }
    this.#offsets.set(index, offset);
    return shown;
  }
}

function isTokenLogprob(entry: Fields): entry is Fields & { readonly token: string } {
  return typeof entry.token === 'string';
}

/** Characters as OpenAI counts them: code points. */
function characters(text: string): number {
  let count = 0;
  for (const _character of text) count += 1;
  return count;
}

/** A completion has only three reasons; without tools the others do not occur. */
function finishReason(reason: unknown): string | null {
  if (reason === null || reason === undefined) return null;
  return reason === 'length' || reason === 'content_filter' ? reason : 'stop';
}

function hasOutput({ text, logprobs, finish_reason: reason }: CompletionChoice): boolean {
  return text !== '' || logprobs !== null || reason !== null;
}
