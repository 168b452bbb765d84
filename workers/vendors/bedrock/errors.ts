import { ApiError } from '../../../shared/errors.ts';
import type { HttpHeaders } from '../../http/exchange.ts';
import { isObject } from '../support/json-object.ts';
import { readRetryAfter, readVendorError } from '../support/read-vendor-error.ts';
import { vendorError } from '../vendor-error.ts';

/**
 * Statuses by the names of errors (https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_Converse.html, "Errors",
 * and CommonErrors), for errors without a status and those whose own means something else here: a quota is the operator's, and a
 * model that is not ready, or that failed (424), may succeed on a retry.
 */
const statuses: Readonly<Record<string, number>> = {
  ValidationException: 400,
  AccessDeniedException: 403,
  ExpiredTokenException: 403,
  IncompleteSignature: 403,
  InvalidSignatureException: 403,
  UnrecognizedClientException: 403,
  ResourceNotFoundException: 404,
  ModelTimeoutException: 408,
  ModelErrorException: 500,
  ModelStreamErrorException: 500,
  ServiceQuotaExceededException: 429,
  ThrottlingException: 429,
  InternalServerException: 500,
  ModelNotReadyException: 503,
  ServiceUnavailableException: 503,
};

/** Messages of models and of Bedrock itself about a prompt beyond the context window. */
const tooLong = [
  /input is too long for requested model/i,
  /prompt is too long: \d+ tokens > \d+ maximum/i,
  /input length and `max_tokens` exceed context limit/i,
  /input tokens exceeded: number of input tokens exceeds maximum length/i,
  /maximum context length is \d+ tokens/i,
  /prompt contains \d+ tokens\b.*too large for model/i,
];

/** Faults of the operator's list of models that Bedrock reports as a bad request. */
const unknownModel = [/model identifier is invalid/i, /on-demand throughput isn.t supported/i];

/** Bedrock's errors as the caller sees them. */
export class BedrockErrors {
  private readonly vendor: string;
  private readonly secrets: readonly string[];

  constructor(vendor: string, secrets: readonly string[]) {
    this.vendor = vendor;
    this.secrets = secrets;
  }

  /** The error of an answer: its name is in a header, or in the body. */
  ofStatus(status: number, body: string, headers: HttpHeaders): ApiError {
    const name = String(headers['x-amzn-errortype'] ?? nameIn(body));
    return this.of(name, body, status, readRetryAfter(headers));
  }

  /** An error inside a stream. @param name `throttlingException` @param body JSON with its message, or the message itself */
  inStream(name: string, body: string): ApiError {
    return this.of(name, body.startsWith('{') ? body : JSON.stringify({ message: body }), 500, undefined);
  }

  private of(given: string, body: string, status: number, retryAfterMs: number | undefined): ApiError {
    // The service's namespace may precede a name, and an address may follow it.
    const [name = ''] = given.slice(given.indexOf('#') + 1).split(':');
    const type = name.slice(0, 1).toUpperCase() + name.slice(1);
    const { message } = readVendorError(body, ...this.secrets);
    const own = Object.hasOwn(statuses, type) ? statuses[type] : undefined;
    const details = { message, param: null, code: /^\w{1,100}$/.test(type) ? type : null, status: null };
    const error = vendorError(this.vendor, own ?? status, details, retryAfterMs);
    if (error.code === 'invalid_request_error' && message !== null) {
      if (tooLong.some((pattern) => pattern.test(message))) {
        return new ApiError('context_length_exceeded', message, {
          vendorStatus: own ?? status,
          cause: error.cause,
        });
      }
      if (unknownModel.some((pattern) => pattern.test(message))) return this.unknownModel();
    }
    return type === 'ResourceNotFoundException' ? this.unknownModel() : error;
  }

  private unknownModel(): ApiError {
    return vendorError(this.vendor, 404, { message: null, param: null, code: 'model_not_found', status: null });
  }
}

function nameIn(body: string): string {
  try {
    const parsed: unknown = JSON.parse(body);
    return isObject(parsed) && typeof parsed.__type === 'string' ? parsed.__type : '';
  } catch {
    return '';
  }
}
