import { type EmbeddingJob, embeddingsBody } from '../../../shared/capabilities/embedding.ts';
import { ApiError } from '../../../shared/errors.ts';
import type { HttpClient } from '../../http/http-client.ts';
import { type RequestBody, requestText } from '../request-body.ts';
import { isObject, type JsonObject } from '../support/json-object.ts';
import { vectorToBase64, withoutSpace } from '../support/vector-text.ts';
import type { VendorMethod } from '../vendor.ts';
import type { OpenAiAnswerReader } from './answer-reader.ts';
import { composeRequest } from './request.ts';

const path = '/embeddings';

/** Embeddings (https://platform.openai.com/docs/api-reference/embeddings): the request passes unread. */
export function openAiEmbeddings(http: HttpClient, answerReader: OpenAiAnswerReader): VendorMethod {
  return async (call) => {
    const { signal, silenceMs } = call;
    const text = await http.post({ path, body: composeRequest({ ...call, stream: false }), signal, silenceMs });
    const { vectors, usage } = readEmbeddings(text ?? '', answerReader);
    // Some vendors return numbers whatever was requested.
    const shown = isBase64Wanted(call.request) ? vectors.map(vectorToBase64) : vectors;
    return { body: embeddingsBody(shown, usage), usage };
  };
}

/** Quotes inside strings are escaped, so a match is never text but a key and its value: numbers, or base64. */
const vectorMember = /"embedding"\s*:\s*(\[[\d\s,.eE+-]*\]|"[A-Za-z0-9+/=_-]*")/g;

/**
 * The vectors of an answer as JSON texts, in the order of the inputs. They are extracted before the rest is parsed: the numbers
 * of one answer can be tens of megabytes, and no code here needs them.
 * @throws ApiError for an answer without exactly one vector for each index from 0.
 */
function readEmbeddings(
  text: string,
  answerReader: OpenAiAnswerReader,
): { vectors: string[]; usage: JsonObject | null } {
  const found: string[] = [];
  const rest = text.replace(vectorMember, (_, vector: string) => `"embedding":${found.push(vector) - 1}`);
  const answer = answerReader.answer(rest);
  if (!Array.isArray(answer.data) || answer.data.length === 0) throw unusable();
  const vectors = new Array<string>(answer.data.length);
  for (const [position, item] of answer.data.entries()) {
    const index = isObject(item) ? (item.index ?? position) : undefined;
    const vector = isObject(item) && typeof item.embedding === 'number' ? found[item.embedding] : undefined;
    const isNew = typeof index === 'number' && index in answer.data && vectors[index] === undefined;
    if (vector === undefined || !isNew) throw unusable();
    vectors[index] = withoutSpace(vector);
  }
  return { vectors, usage: isObject(answer.usage) ? answer.usage : null };
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
