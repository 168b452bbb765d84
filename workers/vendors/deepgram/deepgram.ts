import { createHttpClient } from '../../http/http-client.ts';
import { isObject } from '../support/json-object.ts';
import { readRetryAfter, readVendorError, type VendorErrorDetails } from '../support/read-vendor-error.ts';
import type { Offering } from '../vendor.ts';
import { vendorError } from '../vendor-error.ts';
import type { VendorOptions } from '../vendor-options.ts';
import { deepgramSpeech } from './speech.ts';
import { deepgramTranscriptions } from './transcriptions.ts';

/** Deepgram (https://developers.deepgram.com): `https://api.deepgram.com/v1`. */
export function createDeepgram({ name, baseUrl, apiKey }: VendorOptions): Offering<'transcribe' | 'speak'> {
  const http = createHttpClient({
    vendor: name,
    baseUrl,
    headers: { authorization: `Token ${apiKey}` },
    secret: apiKey,
    toStatusError: (status, body, headers) =>
      vendorError(name, status, readError(body, apiKey), readRetryAfter(headers)),
  });
  return {
    name,
    transcribe: deepgramTranscriptions(http),
    speak: deepgramSpeech(http),
    close: () => http.close(),
  };
}

/** `{err_code, err_msg}` or `{category, message}`, by the age of the endpoint (https://developers.deepgram.com/docs/errors). */
function readError(body: string, secret: string): VendorErrorDetails {
  let error: unknown;
  try {
    error = JSON.parse(body);
  } catch {
    error = null;
  }
  const { err_msg: older, message, err_code: code, category } = isObject(error) ? error : {};
  return readVendorError(JSON.stringify({ message: older ?? message, code: code ?? category }), secret);
}
