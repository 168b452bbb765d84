import type { ApiError } from '../../../shared/errors.ts';
import { createCallerDownloader } from '../../http/download.ts';
import type { HttpHeaders } from '../../http/exchange.ts';
import { createHttpClient } from '../../http/http-client.ts';
import { isObject, type JsonObject } from '../support/json-object.ts';
import { readRetryAfter, readVendorError } from '../support/read-vendor-error.ts';
import { contentRefused } from '../support/vendor-task-calls.ts';
import type { Offering } from '../vendor.ts';
import { vendorError } from '../vendor-error.ts';
import type { VendorOptions } from '../vendor-options.ts';
import { stabilityImages } from './images.ts';

/** Stability AI (https://platform.stability.ai/docs/api-reference): `https://api.stability.ai`, without a version. */
export function createStability({ name, baseUrl, apiKey }: VendorOptions): Offering<'image'> {
  const http = createHttpClient({
    vendor: name,
    baseUrl,
    // Otherwise it returns the image alone, and its finish reason in headers.
    headers: { authorization: `Bearer ${apiKey}`, accept: 'application/json' },
    secret: apiKey,
    toStatusError: (status, body, headers) => toError(name, apiKey, status, body, headers),
  });
  return { name, image: stabilityImages(http, createCallerDownloader()), close: () => http.close() };
}

/** `{id, name, errors}`: a short-hand name, and sentences such as `some-field: is required`. */
function toError(vendor: string, secret: string, status: number, body: string, headers: HttpHeaders): ApiError {
  const { name: code, errors } = readBody(body);
  const sentences = Array.isArray(errors) ? errors.filter((sentence) => typeof sentence === 'string') : [];
  const [, param] = /^([\w.-]{1,100}): /.exec(sentences[0] ?? '') ?? [];
  const message = sentences.join(' ');
  const details = readVendorError(JSON.stringify({ code, message, param }), secret);
  // Unlike other 403s, not the key's fault: the requested content was refused.
  if (status === 403 && code === 'content_moderation') return contentRefused(details.message ?? undefined);
  return vendorError(vendor, status, details, readRetryAfter(headers));
}

function readBody(body: string): JsonObject {
  try {
    const parsed: unknown = JSON.parse(body);
    return isObject(parsed) ? parsed : {};
  } catch {
    return {};
  }
}
