import type { Model } from '../../shared/catalogue/models.ts';
import { ApiError } from '../../shared/errors.ts';
import { invalidParameter } from './invalid-request.ts';
import type { ModelLimits } from './model-limits.ts';

/**
 * No tokenizer's tokens are that long on average (runs of one character count once): a prompt with more characters per token
 * of the window cannot fit. Closer cases are left to the vendor.
 */
const charactersPerToken = 16;

type Bounded = Pick<Model, 'id' | 'input' | 'contextWindow' | 'maxOutputTokens'>;

/**
 * Checks a chat against its model's row: images for a model without image input, more output tokens than the model's
 * maximum, a prompt that cannot fit. Without facts in the row the vendor decides.
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
