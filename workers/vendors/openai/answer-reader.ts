import { ApiError } from '../../../shared/errors.ts';
import { baseRespFault } from '../support/base-resp.ts';
import { type JsonObject, parseObject } from '../support/json-object.ts';
import type { VendorAnswer } from '../vendor.ts';
import { readVendorError, type VendorErrorDetails, vendorError } from '../vendor-error.ts';
import { type AnswerShape, shapeUsage } from './shape.ts';

/** Removes the fields that the gateway sets itself. Undefined, not deleted: JSON omits both, and a delete slows the object. */
export function removeIdentity(answer: JsonObject): void {
  answer.id = undefined;
  answer.object = undefined;
  answer.created = undefined;
  answer.model = undefined;
}

/** Whether an answer or a chunk under a status of success is an error, as OpenAI or MiniMax reports one. */
export function isReportedError(answer: JsonObject): boolean {
  return Boolean(answer.error) || (answer.base_resp !== undefined && baseRespFault(answer) !== undefined);
}

/** Parses JSON of one vendor, checked as far as the gateway relies on it. */
export class OpenAiAnswerReader {
  protected readonly vendor: string;
  protected readonly apiKey: string;

  constructor(vendor: string, apiKey: string) {
    this.vendor = vendor;
    this.apiKey = apiKey;
  }

  /** What an answer says of its error, without the key. */
  details(text: string): VendorErrorDetails {
    return readVendorError(text, this.apiKey);
  }

  /** The error of an answer that came under a status of success. */
  reportedError(text: string): ApiError {
    const details = this.details(text);
    if (details.status !== null) return vendorError(this.vendor, details.status, details);
    return new ApiError('server_error', details.message ?? "The model's vendor had an error.", {
      vendorCode: details.code,
      isQuoted: details.message !== null,
    });
  }

  /** Parses a whole answer. @throws ApiError for an error instead of an answer, and for anything but a JSON object. */
  answer(text: string): JsonObject {
    const answer = parseObject(text);
    if (isReportedError(answer)) throw this.reportedError(text);
    return answer;
  }

  /** A whole completion, its choices checked. */
  completion(text: string): JsonObject & { choices: unknown[] } {
    const answer = this.answer(text);
    const { choices } = answer;
    if (!Array.isArray(choices) || choices.length === 0) {
      throw new ApiError('server_error', "The model's vendor answered without choices.");
    }
    removeIdentity(answer);
    return Object.assign(answer, { choices });
  }

  /** A whole completion in answer to a request without streaming. */
  held(text: string | null, shape: AnswerShape): VendorAnswer {
    const answer = this.completion(text ?? '');
    shape.whole(answer);
    const usage = shapeUsage(answer.usage);
    if (usage !== null) answer.usage = usage;
    return { body: JSON.stringify(answer), usage, tier: answer.service_tier };
  }
}
