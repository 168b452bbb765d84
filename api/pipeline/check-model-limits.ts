import type { Model } from '../../shared/catalogue/models.ts';
import { ApiError } from '../../shared/errors.ts';
import { invalidParameter } from './invalid-request.ts';
import type { ModelLimits } from './model-limits.ts';

/**
 * No tokenizer's tokens are that long on the average of a prompt (runs of one character are not counted): what has more
 * characters than that for each token of the window cannot fit. Whatever is nearer to the limit is the vendor's to count.
 */
const charactersPerToken = 16;

type Bounded = Pick<Model, 'id' | 'input' | 'contextWindow' | 'maxOutputTokens'>;

/**
 * Holds a chat against its model's row: images to a model that takes none, more output tokens than it ever answers, a prompt
 * that cannot fit. A row that says nothing leaves it to the vendor.
 * @throws ApiError 400 that names the field at fault.
 */
export function checkModelLimits(limits: ModelLimits, model: Bounded): void {
  const { image, most, param, characters } = limits;
  if (image !== undefined && model.input?.includes('image') === false) {
    throw invalidParameter(image, `Invalid '${image}': the model \`${model.id}\` does not take images.`);
  }
  const maxTokens = model.maxOutputTokens;
  if (most !== undefined && maxTokens !== undefined && most.tokens > maxTokens) {
    throw invalidParameter(
      most.param,
      `Invalid '${most.param}': expected a value <= ${maxTokens} with \`${model.id}\`, but got ${most.tokens} instead.`,
    );
  }
  const window = model.contextWindow;
  if (window !== undefined && characters > window * charactersPerToken) {
    throw new ApiError(
      'context_length_exceeded',
      `This model's maximum context length is ${window} tokens. However, your prompt is longer than that. Please reduce the length of the prompt.`,
      { param },
    );
  }
}
