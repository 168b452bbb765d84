import { ApiError } from '../../../shared/errors.ts';
import type { HttpClient } from '../../http/http-client.ts';
import type { JsonObject } from '../support/json-object.ts';
import { readVendorError } from '../support/read-vendor-error.ts';
import { beginTask, contentRefused, unknownOutcome } from '../support/vendor-task-calls.ts';
import type { VendorCall } from '../vendor.ts';

const unknownPrediction = "The model's vendor does not know the prediction.";

type Limits = Pick<VendorCall, 'signal' | 'silenceMs' | 'holder'>;

/** A model's message if its rules were violated (https://replicate.com/docs/reference/error-codes). */
const refusals = /nsfw|\bE005\b|flagged as sensitive|safety (filter|system|checker)|content (policy|moderation)/i;

/** A prediction (https://replicate.com/docs/reference/http), as far as the gateway relies on it. */
export interface Prediction {
  readonly id: string;
  /** The model's output; undefined while it runs. */
  readonly output: unknown;
}

/** Replicate's API. */
export interface ReplicateApi {
  readonly http: HttpClient;
  /** The key, which no error may contain. */
  readonly secret: string;
}

/** Creates a prediction, once. @throws ApiError as `beginTask` does */
export async function createPrediction(
  { http, secret }: ReplicateApi,
  model: string,
  input: JsonObject,
  { signal, silenceMs, holder }: Limits,
): Promise<Prediction> {
  const [name = '', version] = model.split(':');
  const path =
    version === undefined ? `/models/${name.split('/').map(encodeURIComponent).join('/')}/predictions` : '/predictions';
  const body = JSON.stringify(version === undefined ? { input } : { version, input });
  const answer = await beginTask(http, { path, body, signal, silenceMs, holder });
  const { id } = answer;
  if (typeof id !== 'string' || !/^\w+$/.test(id)) {
    throw unknownOutcome("The model's vendor began, but did not say what its prediction is called.");
  }
  return { id, output: readOutput(answer, secret) };
}

/** Polls a prediction: the path of its `urls.get`, at the address that the operator configured. */
export function getPrediction(http: HttpClient, id: string, limits: Limits): Promise<string | null> {
  const { signal, silenceMs, holder } = limits;
  const path = `/predictions/${encodeURIComponent(id)}`;
  return http.get({ path, notFound: unknownPrediction, signal, silenceMs, holder });
}

/** Cancels a prediction that is no longer wanted. */
export async function cancelPrediction(http: HttpClient, id: string, { signal, silenceMs }: Limits): Promise<void> {
  const path = `/predictions/${encodeURIComponent(id)}/cancel`;
  await http.post({ path, body: '{}', notFound: unknownPrediction, signal, silenceMs });
}

/**
 * The output of a prediction; undefined while it runs.
 * @param secret that no error may contain
 * @throws ApiError for one that failed
 */
export function readOutput(prediction: JsonObject, secret: string): unknown {
  const { status, output } = prediction;
  switch (status) {
    case 'starting':
    case 'processing':
      return undefined;
    case 'succeeded':
      return output ?? [];
    case 'failed':
    case 'canceled':
    case 'aborted':
      throw predictionError(prediction, secret);
    default:
      throw new ApiError('server_error', "The model's vendor answered with a prediction of an unknown status.");
  }
}

/** Why a prediction failed. @param secret that it may not contain */
export function predictionError({ status, error }: JsonObject, secret: string): ApiError {
  if (status !== 'failed') return new ApiError('server_error', "The model's vendor has cancelled its work.");
  const { message } = readVendorError(JSON.stringify({ error }), secret);
  if (message !== null && refusals.test(message)) return contentRefused(message);
  return new ApiError('server_error', message ?? "The model's vendor could not do it.", { isQuoted: message !== null });
}
