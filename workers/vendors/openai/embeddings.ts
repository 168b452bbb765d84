import type { EmbeddingJob } from '../../../shared/capabilities/embedding.ts';
import { ApiError } from '../../../shared/errors.ts';
import type { MediaFieldSupport } from '../../../shared/vendors/vendor-description.ts';
import type { HttpClient } from '../../http/http-client.ts';
import { type RequestBody, requestText } from '../request-body.ts';
import { isObject, type JsonObject } from '../support/json-object.ts';
import { vectorToBase64, withoutSpace } from '../support/vector-text.ts';
import type { EmbeddingMethod } from '../vendor.ts';
import type { OpenAiAnswerReader } from './answer-reader.ts';
import { isBase64 } from './base64-text.ts';
import { composeRequest } from './completion-method.ts';
import { takeValues } from './take-values.ts';

const path = '/embeddings';

/**
 * Embeddings (https://platform.openai.com/docs/api-reference/embeddings): the request passes unread, unless it has a field that the
 * vendor ignores.
 */
export function openAiEmbeddings(
  http: HttpClient,
  answerReader: OpenAiAnswerReader,
  support: MediaFieldSupport = {},
): EmbeddingMethod {
  const ignored = Object.entries(support).flatMap(([name, kind]) => (kind === 'ignored' ? [name] : []));
  return async (call) => {
    const { signal, silenceMs, holder } = call;
    const bytes = await http.postForBytes({
      path,
      body: composeRequest({ ...call, request: withoutFields(call.request, ignored), stream: false }),
      signal,
      silenceMs,
      holder,
    });
    const { vectors, usage } = readEmbeddings(bytes, answerReader);
    // Some vendors return numbers whatever was requested.
    return { vectors: isBase64Wanted(call.request) ? vectors.map(vectorToBase64) : vectors, usage };
  };
}

function withoutFields(request: RequestBody, names: readonly string[]): RequestBody {
  if (!names.some((name) => request.includes(`"${name}":`))) return request;
  const fields = Object.entries(JSON.parse(requestText(request)) as EmbeddingJob);
  return JSON.stringify(Object.fromEntries(fields.filter(([name]) => !names.includes(name))));
}

/**
 * The vectors of an answer, in the order of the inputs. They are extracted before the rest is parsed: one answer can have tens of
 * megabytes of them, and no code here needs them.
 * @throws ApiError for an answer without exactly one vector for each index from 0.
 */
function readEmbeddings(
  bytes: Buffer,
  answerReader: OpenAiAnswerReader,
): { vectors: (string | Buffer)[]; usage: JsonObject | null } {
  const { found, rest } = takeValues(bytes, 'embedding', readVector);
  const answer = answerReader.answer(rest);
  if (!Array.isArray(answer.data) || answer.data.length === 0) throw unusable();
  const vectors = new Array<string | Buffer>(answer.data.length);
  for (const [position, item] of answer.data.entries()) {
    const index = isObject(item) ? (item.index ?? position) : undefined;
    const vector = isObject(item) && typeof item.embedding === 'number' ? found[item.embedding] : undefined;
    const isNew = typeof index === 'number' && index in answer.data && vectors[index] === undefined;
    if (vector === undefined || !isNew) throw unusable();
    vectors[index] = vector;
  }
  return { vectors, usage: isObject(answer.usage) ? withBothCounts(answer.usage) : null };
}

/** A usage with both of OpenAI's counts, which are the same number: Voyage has one of them. */
function withBothCounts(usage: JsonObject): JsonObject {
  const { prompt_tokens: prompt, total_tokens: total } = usage;
  return { ...usage, prompt_tokens: prompt ?? total, total_tokens: total ?? prompt };
}

/**
 * A vector as it is, base64 or numbers; as text if it has white space. Undefined for anything else, which its caller could not read, and
 * for an empty one, which some servers answer where they have failed.
 */
function readVector(bytes: Buffer): string | Buffer | undefined {
  const text = bytes.toString('latin1');
  if (text.startsWith('"')) return areFloats(text.slice(1, -1)) ? bytes : undefined;
  if (/^\[[\d,.eE+-]*\d\]$/.test(text)) return bytes;
  return /^\[[\d\s,.eE+-]*\d\s*\]$/.test(text) ? withoutSpace(text) : undefined;
}

const bytesOfFloat = 4;

/** Whether a text is base64 of whole floats of 32 bits: cut off, clients cannot read it. */
function areFloats(text: string): boolean {
  return text !== '' && isBase64(text) && Buffer.byteLength(text, 'base64') % bytesOfFloat === 0;
}

function unusable(): ApiError {
  return new ApiError('server_error', "The model's vendor answered without an embedding for each input.");
}

/** The request is parsed only if `"base64"` occurs in it at all. */
function isBase64Wanted(request: RequestBody): boolean {
  return (
    request.includes('"base64"') && (JSON.parse(requestText(request)) as EmbeddingJob).encoding_format === 'base64'
  );
}
