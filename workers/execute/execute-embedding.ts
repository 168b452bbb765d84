import { type EmbeddingJob, embeddingsBody } from '../../shared/capabilities/embedding.ts';
import type { TextOrTokens } from '../../shared/capabilities/text-or-tokens.ts';
import type { Model } from '../../shared/catalogue/models.ts';
import { ApiError } from '../../shared/errors.ts';
import { type RequestBody, requestText } from '../vendors/request-body.ts';
import { sumOfAll } from '../vendors/support/sum-usage.ts';
import type { AnswerBody, VendorEmbeddings } from '../vendors/vendor.ts';
import { asSent, callOnce, countSent, type Execute, methodOf } from './execution.ts';
import { runInOrder } from './run-in-order.ts';

/** Concurrent calls of one job. */
const callsAtOnce = 4;

/** Inputs of one call that returns numbers: with 3,072 dimensions of 24 characters they stay far below the longest body. */
const maxAsNumbers = 512;

/** Limit of all answers of a job's calls, in characters: more than 2048 inputs with 3,072 numbers each. */
const maxAnswersLength = 256 * 1024 * 1024;

/** Embeddings: as many calls as the vendor needs for the inputs, and one answer. */
export const executeEmbedding: Execute<AnswerBody> = async (execution) => {
  const { vendor, row, call, dropsUnsupported, part = callOnce } = execution;
  const embed = methodOf(vendor, 'embed');
  const job = JSON.parse(requestText(call.request)) as EmbeddingJob;
  const batches = splitInputs(job, row.embedding ?? { batch: 1 });
  let length = 0;
  const embedBatch = async (
    input: TextOrTokens,
    request: RequestBody,
    signal: AbortSignal,
  ): Promise<VendorEmbeddings> => {
    const answer = await embed({ ...call, request, signal });
    for (const vector of answer.vectors) length += vector.length;
    if (length > maxAnswersLength) throw new ApiError('server_error', "The vendor's embeddings are too long together.");
    if (answer.vectors.length !== (isList(input) ? input.length : 1)) {
      throw new ApiError('server_error', "The model's vendor answered without an embedding for each input.");
    }
    if (!dropsUnsupported) checkDimensions(job, answer);
    return answer;
  };
  const sent = countSent(call);
  const indexes = indexesOf(batches);
  const answers = await runInOrder(batches, callsAtOnce, call.signal, (input, index, signal) => {
    const request = batches.length === 1 ? call.request : JSON.stringify({ ...job, input });
    const inputs = indexes[index] as number[];
    return part(
      asSent(sent, { inputs, signal }, () => embedBatch(input, request, signal)),
      signal,
    );
  });
  const [only] = answers;
  const usage =
    answers.length === 1 && only
      ? only.usage
      : sumOfAll(
          answers.map((answer) => answer.usage),
          true,
        );
  const body = embeddingsBody(
    answers.flatMap(({ vectors }) => vectors),
    usage,
  );
  return { body, usage };
};

/** Some vendors pass over the field. @throws ApiError 400 for vectors of another length than was asked for. */
function checkDimensions({ dimensions }: EmbeddingJob, { vectors: [first] }: VendorEmbeddings): void {
  if (dimensions === undefined || first === undefined) return;
  const made = dimensionsOf(first.toString());
  if (made === dimensions) return;
  const message = `The model's vendor does not support specifying dimensions: its embeddings have ${made}, not ${dimensions}.`;
  throw new ApiError('invalid_request_error', message, { param: 'dimensions' });
}

/** How many numbers a vector has, as a list or in base64: four bytes each. */
function dimensionsOf(vector: string): number {
  if (vector.startsWith('[')) return vector.split(',').length;
  return Buffer.byteLength(vector.slice(1, -1), 'base64') / 4;
}

type Limits = Pick<NonNullable<Model['embedding']>, 'batch' | 'batchTokens'>;
type Inputs = string[] | number[][];

/** Splits the inputs into those of each call that the vendor accepts: limited in count, and in tokens as far as these can be estimated. */
export function splitInputs({ input, encoding_format }: EmbeddingJob, limits: Limits): TextOrTokens[] {
  if (!isList(input)) return [input];
  const maxInputs = encoding_format === 'base64' ? limits.batch : Math.min(limits.batch, maxAsNumbers);
  const maxTokens = limits.batchTokens ?? Number.POSITIVE_INFINITY;
  const batches: TextOrTokens[] = [];
  let first = 0;
  let tokens = 0;
  for (let index = 0; index < input.length; index++) {
    const more = Number.isFinite(maxTokens) ? estimateTokens(input[index] as string | number[]) : 0;
    if (index > first && (index - first >= maxInputs || tokens + more > maxTokens)) {
      batches.push(input.slice(first, index) as Inputs);
      first = index;
      tokens = 0;
    }
    tokens += more;
  }
  batches.push(first === 0 ? input : (input.slice(first) as Inputs));
  return batches;
}

/** The indexes of the inputs of each call among all. */
function indexesOf(batches: readonly TextOrTokens[]): number[][] {
  let next = 0;
  return batches.map((input) => Array.from({ length: isList(input) ? input.length : 1 }, () => next++));
}

/** Whether there are several inputs; a list of tokens is one. */
function isList(input: TextOrTokens): input is Inputs {
  return typeof input !== 'string' && typeof input[0] !== 'number';
}

/** Overestimates: English has about four bytes per token, and text with only two is rare. */
function estimateTokens(input: string | number[]): number {
  return typeof input === 'string' ? Math.ceil(Buffer.byteLength(input) / 2) : input.length;
}
