import { createHttpClient } from '../../http/http-client.ts';
import { creditErrors } from '../support/credit-errors.ts';
import { isObject } from '../support/json-object.ts';
import { readVendorError, type VendorErrorDetails } from '../support/read-vendor-error.ts';
import { createFilmDownloader } from '../support/video-request.ts';
import type { Offering } from '../vendor.ts';
import type { VendorOptions } from '../vendor-options.ts';
import { runwayVideos } from './videos.ts';

/** The version of the API that the adapter is written for; the vendor refuses requests without one. */
const version = '2024-11-06';

/** Runway's fields, and their names for callers. */
const ownFields = new Map([
  ['promptText', 'prompt'],
  ['promptImage', 'input_reference'],
  ['ratio', 'size'],
  ['duration', 'seconds'],
]);

/** Runway (https://docs.dev.runwayml.com): `https://api.dev.runwayml.com/v1`. */
export function createRunway({ name, baseUrl, apiKey }: VendorOptions): Offering<'video'> {
  const http = createHttpClient({
    vendor: name,
    baseUrl,
    headers: { authorization: `Bearer ${apiKey}`, 'x-runway-version': version },
    secret: apiKey,
    toStatusError: creditErrors(name, apiKey, readError),
  });
  return { name, video: runwayVideos(http, createFilmDownloader(baseUrl)), close: () => http.close() };
}

/** `{error, issues: [{path, message}], docUrl}`; the first issue has the details of `error`. */
function readError(body: string, secret: string): VendorErrorDetails {
  const details = readVendorError(body, secret);
  const { path, message } = firstIssue(body);
  if (!Array.isArray(path) || typeof message !== 'string') return details;
  const [field, ...rest] = path.map(String);
  const param = [ownFields.get(field ?? '') ?? field, ...rest].join('.');
  return readVendorError(JSON.stringify({ error: { message: `Invalid '${param}': ${message}`, param } }), secret);
}

function firstIssue(body: string): { readonly path?: unknown; readonly message?: unknown } {
  let answer: unknown;
  try {
    answer = JSON.parse(body);
  } catch {
    return {};
  }
  const [issue]: unknown[] = isObject(answer) && Array.isArray(answer.issues) ? answer.issues : [];
  return isObject(issue) ? issue : {};
}
