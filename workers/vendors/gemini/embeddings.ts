import type { TextOrTokens } from '../../../shared/capabilities/text-or-tokens.ts';
import { ApiError } from '../../../shared/errors.ts';
import type { HttpClient } from '../../http/http-client.ts';
import { requestText } from '../request-body.ts';
import { isObject, type JsonObject } from '../support/json-object.ts';
import { unsupportedField } from '../support/unsupported-field.ts';
import { vectorToBase64, withoutSpace } from '../support/vector-text.ts';
import type { EmbeddingMethod } from '../vendor.ts';
import type { GeminiAnswerReader } from './answer-reader.ts';
import { modelPath } from './request.ts';

interface EmbeddingFields {
  readonly input: TextOrTokens;
  readonly dimensions?: number;
  readonly encoding_format?: 'float' | 'base64';
  /** A hint, which Gemini lacks: it is left out. */
  readonly user?: string;
}

const known = new Set(['input', 'dimensions', 'encoding_format', 'user', 'stream']);

/**
 * Embeddings (https://ai.google.dev/api/embeddings#method:-models.batchembedcontents), one request for each input. Gemini takes
 * texts, not tokens, and only the answers of its newest models have counts.
 */
export function geminiEmbeddings(http: HttpClient, reader: GeminiAnswerReader): EmbeddingMethod {
  return async ({ model, request, signal, silenceMs, holder }) => {
    const fields = JSON.parse(requestText(request)) as EmbeddingFields;
    const texts = textsOf(fields);
    const body = JSON.stringify({
      requests: texts.map((text) => ({
        model: `models/${model}`,
        content: { parts: [{ text }] },
        ...(fields.dimensions !== undefined && { outputDimensionality: fields.dimensions }),
      })),
    });
    const text = await http.post({ path: modelPath(model, 'batchEmbedContents'), body, signal, silenceMs, holder });
    const { vectors, usage } = readVectors(text ?? '', texts.length, reader);
    return { vectors: fields.encoding_format === 'base64' ? vectors.map(vectorToBase64) : vectors, usage };
  };
}

function textsOf(fields: EmbeddingFields): string[] {
  for (const [name, value] of Object.entries(fields)) {
    if (value == null || known.has(name)) continue;
    throw unsupportedField(name, "the model's vendor does not have it");
  }
  const texts = typeof fields.input === 'string' ? [fields.input] : fields.input;
  if (!texts.every((text) => typeof text === 'string')) {
    throw unsupportedField('input', "the model's vendor takes texts, not tokens");
  }
  return texts;
}

/** Quotes inside strings are escaped, so a match is never text but a key and its numbers. */
const valuesMember = /"values"\s*:\s*(\[[\d\s,.eE+-]*\d\s*\])/g;

/** The vectors as JSON texts: they are extracted before the rest is parsed, as no code here needs their numbers. */
function readVectors(
  text: string,
  expected: number,
  reader: GeminiAnswerReader,
): { vectors: string[]; usage: JsonObject | null } {
  const found: string[] = [];
  const rest = text.replace(valuesMember, (_, vector: string) => `"values":${found.push(vector) - 1}`);
  const { embeddings, usageMetadata: counts } = reader.answer(rest);
  const vectors = (Array.isArray(embeddings) ? embeddings : []).map((embedding) => {
    const vector = isObject(embedding) && typeof embedding.values === 'number' ? found[embedding.values] : undefined;
    if (vector === undefined) throw unusable();
    return withoutSpace(vector);
  });
  if (vectors.length !== expected) throw unusable();
  const prompt = isObject(counts) ? counts.promptTokenCount : undefined;
  return { vectors, usage: typeof prompt === 'number' ? { prompt_tokens: prompt, total_tokens: prompt } : null };
}

function unusable(): ApiError {
  return new ApiError('server_error', "The model's vendor answered without an embedding for each input.");
}
