import type { Exchange } from '../exchange.ts';
import { answerMedia, meetsInAnswer, sendWhole } from '../media-answer.ts';
import { findModel } from '../models.ts';
import { readPromptTexts } from '../prompt-texts.ts';
import { RequestFields, readCallOptions } from '../request-fields.ts';
import { jsonFaults } from '../request-options.ts';
import { invalidParameter } from '../wire-error.ts';
import { embedText } from './embed-text.ts';

const DEFAULT_DIMENSIONS = 256;
const MAXIMUM_DIMENSIONS = 3072;
/** Fewer than any real vendor accepts, so that small requests are split, too. */
const MAXIMUM_INPUTS = 64;

const fields = ['input', 'dimensions', 'encoding_format'];

/** `POST /v1/embeddings`. `tokens_per_second` and `after_tokens` count inputs here. */
export function createEmbeddings(exchange: Exchange): void {
  const request = RequestFields.fromJson(exchange.body);
  const model = findModel(request.requiredText('model'), 'embedding');
  request.allowOnly(fields);
  const inputs = readPromptTexts(request.raw('input'), 'input');
  if (inputs.length > MAXIMUM_INPUTS) {
    throw invalidParameter('input', `'input' must have at most ${MAXIMUM_INPUTS} items, but has ${inputs.length}.`);
  }
  const empty = inputs.findIndex(({ text }) => text === '');
  if (empty >= 0) throw invalidParameter('input', `'input' must not hold an empty string, but item ${empty} is one.`);
  const dimensions = request.number('dimensions', 1, MAXIMUM_DIMENSIONS, 'integer') ?? DEFAULT_DIMENSIONS;
  const format = request.choice('encoding_format', ['float', 'base64']) ?? 'float';
  const options = readCallOptions(request, exchange.request.headers, [...jsonFaults, 'no_usage']);
  answerMedia(exchange, { ...options, model, stream: false }, async (delivery) => {
    const tokens = inputs.reduce((sum, input) => sum + input.tokens, 0);
    const body = JSON.stringify({
      object: 'list',
      data: inputs.map(({ text }, index) => {
        const vector = embedText(text, dimensions);
        return { object: 'embedding', index, embedding: format === 'base64' ? toBase64(vector) : [...vector] };
      }),
      model: model.id,
      ...(!meetsInAnswer(delivery, 'no_usage') && { usage: { prompt_tokens: tokens, total_tokens: tokens } }),
    });
    await sendWhole(delivery, 'application/json', body, inputs.length);
  });
}

/** Little-endian 32-bit floats, regardless of the machine's byte order. */
function toBase64(vector: Float32Array): string {
  const bytes = Buffer.alloc(vector.length * 4);
  for (const [index, value] of vector.entries()) bytes.writeFloatLE(value, index * 4);
  return bytes.toString('base64');
}
