import type { ApiError } from '../../../shared/errors.ts';
import type { HttpHeaders } from '../../http/exchange.ts';
import { OpenAiAnswerReader } from '../openai/answer-reader.ts';
import { isObject, type JsonObject, parseObject } from '../support/json-object.ts';
import { readRetryAfter, readVendorError, type VendorErrorDetails } from '../support/read-vendor-error.ts';
import { contentRefused } from '../support/vendor-task-calls.ts';
import { vendorError } from '../vendor-error.ts';

/** Error codes of the content filters, for chats and images. */
const refusals = /^(content_?filter|content_policy_violation|moderation_blocked|ResponsibleAIPolicyViolation)$/i;

/** Azure's code for a model that is not deployed. */
const unknownDeployment = 'DeploymentNotFound';

/**
 * Azure's errors, which are OpenAI's with other codes and an `innererror` (or `inner_error`) of the content filters:
 * https://learn.microsoft.com/azure/ai-foundry/openai/concepts/content-filter#scenario-details.
 */
export class AzureAnswerReader extends OpenAiAnswerReader {
  override reportedError(text: string): ApiError {
    const details = readVendorError(text, this.apiKey);
    return isRefusal(text, details) ? contentRefused(details.message ?? undefined) : super.reportedError(text);
  }

  /** The error of an answer with a status other than success. */
  statusError(status: number, body: string, headers: HttpHeaders): ApiError {
    const details = readVendorError(body, this.apiKey);
    if (status === 400 && isRefusal(body, details)) return contentRefused(details.message ?? undefined);
    const known = details.code === unknownDeployment ? { ...details, code: 'model_not_found' } : details;
    return vendorError(this.vendor, status, known, readRetryAfter(headers));
  }
}

function isRefusal(text: string, { code }: VendorErrorDetails): boolean {
  if (code !== null && refusals.test(code)) return true;
  const { error } = readObject(text);
  const inner = isObject(error) ? (error.innererror ?? error.inner_error) : undefined;
  return isObject(inner) && refusals.test(String(inner.code));
}

/** Proxies in between return errors that are not JSON. */
function readObject(text: string): JsonObject {
  try {
    return parseObject(text);
  } catch {
    return {};
  }
}
