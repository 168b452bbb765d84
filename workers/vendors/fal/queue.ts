import { setTimeout as delay } from 'node:timers/promises';
import { ApiError } from '../../../shared/errors.ts';
import { LostAnswerError, UnreachableError } from '../../http/connection-errors.ts';
import type { HttpClient } from '../../http/http-client.ts';
import { type JsonObject, parseObject } from '../support/json-object.ts';
import { beginTask, unknownOutcome } from '../support/vendor-task-calls.ts';
import type { VendorCall } from '../vendor.ts';
import { FailedRequestError } from './errors.ts';

/** Tries to fetch a result while its connection breaks or the queue is in trouble, and the wait between them, which grows. */
const resultTries = 5;
const resultPauseMs = 500;

const unknownRequest = "The model's vendor does not know the request.";

type Limits = Pick<VendorCall, 'signal' | 'silenceMs' | 'holder'>;

/**
 * fal's queue (https://docs.fal.ai/model-apis/model-endpoints/queue): a request is submitted to a model's path, and afterwards
 * identified by the path of its `response_url`, which omits the end of the model's path.
 */
export class FalQueue {
  private readonly http: HttpClient;

  constructor(http: HttpClient) {
    this.http = http;
  }

  /** Submits once. @returns the request's name: `fal-ai/flux/requests/764c…` @throws ApiError as `beginTask` does */
  async submit(model: string, input: JsonObject, limits: Limits): Promise<string> {
    const path = `/${model.split('/').map(encodeURIComponent).join('/')}`;
    const { response_url: link } = await beginTask(this.http, { path, body: JSON.stringify(input), ...pick(limits) });
    // The link's host is ignored: the key goes only to the host that the operator configured.
    const pathname = typeof link === 'string' && URL.canParse(link) ? new URL(link).pathname : '';
    const [, name] = /^\/((?:[\w.-]+\/){2,4}requests\/[\w-]+)$/.exec(pathname) ?? [];
    if (name !== undefined) return name;
    throw unknownOutcome("The model's vendor began, but did not say what its request is called.");
  }

  /** The text of a request's state. */
  status(name: string, limits: Limits): Promise<string | null> {
    return this.http.get({ path: `/${name}/status`, notFound: unknownRequest, ...pick(limits) });
  }

  /** Cancels a request that is no longer wanted. */
  async cancel(name: string, limits: Limits): Promise<void> {
    await this.http.put({ path: `/${name}/cancel`, notFound: unknownRequest, ...pick(limits) });
  }

  /**
   * The result of a completed request.
   * @throws ApiError for a failure, which replaces it: see `isPassing` for those that do not
   */
  async result(name: string, limits: Limits): Promise<JsonObject> {
    for (let tries = 1; ; tries++) {
      try {
        const text = await this.http.get({ path: `/${name}`, notFound: unknownRequest, ...pick(limits) });
        return readResult(text);
      } catch (error) {
        if (!isPassing(error) || limits.signal.aborted) throw error;
        if (tries === resultTries) {
          if (!(error instanceof LostAnswerError)) throw error;
          throw unknownOutcome("The model's vendor was lost before its result came.", error);
        }
        await delay(resultPauseMs * tries, undefined, { signal: limits.signal }).catch(() => undefined);
      }
    }
  }
}

/** A result that is no JSON, such as a proxy's page, says nothing about the request. */
function readResult(text: string | null): JsonObject {
  try {
    return parseObject(text);
  } catch (error) {
    const { code, message } = ApiError.from(error);
    throw new ApiError(code, message, { vendorStatus: 502 });
  }
}

/** Whether another try may get the result: it failed by the way to it, not by the request. */
export function isPassing(error: unknown): boolean {
  if (error instanceof FailedRequestError) return false;
  if (error instanceof LostAnswerError || error instanceof UnreachableError) return true;
  const { vendorStatus = 0 } = ApiError.from(error);
  return vendorStatus === 429 || vendorStatus >= 500;
}

function pick({ signal, silenceMs, holder }: Limits): Limits {
  return { signal, silenceMs, holder };
}

/** Whether a request is completed, by its state. @throws ApiError for an unknown state */
export function isCompleted({ status }: JsonObject): boolean {
  if (status === 'COMPLETED') return true;
  if (status === 'IN_QUEUE' || status === 'IN_PROGRESS') return false;
  throw new ApiError('server_error', "The model's vendor answered with a request of an unknown status.");
}
