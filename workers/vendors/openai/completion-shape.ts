import { ApiError } from '../../../shared/errors.ts';
import type { JsonObject } from '../support/json-object.ts';
import { type AnswerShape, type ChunkShape, eachChoice, endOf, toFinishReason } from './shape.ts';

/** The shape of legacy completions, whose choices look alike in chunks and in whole answers. */
export const completionShape: AnswerShape = {
  whole: (answer) => eachChoice(answer, shapeWholeCompletion),
  chunks: () => new CompletionChunks(),
};

class CompletionChunks implements ChunkShape {
  /** Whether each choice has its finish reason, by its index. */
  readonly #finished = new Map<unknown, boolean>();

  take(chunk: JsonObject): void {
    eachChoice(chunk, (choice) => {
      if (choice.finish_reason !== null) choice.finish_reason = toFinishReason(choice.finish_reason);
      const isFinished = this.#finished.get(choice.index) === true || choice.finish_reason !== null;
      this.#finished.set(choice.index, isFinished);
    });
  }

  end(): JsonObject[] | undefined {
    const open = [...this.#finished].filter(([, isFinished]) => !isFinished);
    if (open.length === 0) return undefined;
    return open.map(([index]) => ({ text: '', index, logprobs: null, finish_reason: endOf(0) }));
  }
}

/** Completes the fields that every whole choice has. @throws ApiError if it has no text, unless the vendor's filters have removed it. */
function shapeWholeCompletion(choice: JsonObject): void {
  choice.finish_reason = toFinishReason(choice.finish_reason) ?? endOf(0);
  if (choice.finish_reason === 'content_filter') choice.text ??= '';
  if (typeof choice.text !== 'string') {
    throw new ApiError('server_error', "The model's vendor answered with a choice that has no text.");
  }
  choice.logprobs ??= null;
}
