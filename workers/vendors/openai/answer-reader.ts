import { ApiError } from '../../../shared/errors.ts';
import { type JsonObject, parseObject } from '../support/json-object.ts';
import { readVendorError, type VendorErrorDetails } from '../support/read-vendor-error.ts';
import type { VendorAnswer } from '../vendor.ts';
import { vendorError } from '../vendor-error.ts';
import { type AnswerShape, isReportedError, removeIdentity, shapeUsage } from './shape.ts';

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
