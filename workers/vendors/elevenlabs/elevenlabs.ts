import type { ApiError } from '../../../shared/errors.ts';
import type { HttpHeaders } from '../../http/exchange.ts';
import { createHttpClient } from '../../http/http-client.ts';
import { isObject, type JsonObject } from '../support/json-object.ts';
import { readRetryAfter, readVendorError } from '../support/read-vendor-error.ts';
import type { Offering } from '../vendor.ts';
import { vendorError } from '../vendor-error.ts';
import type { VendorOptions } from '../vendor-options.ts';
import { elevenLabsSpeech } from './speech.ts';
import { elevenLabsTranscriptions } from './transcriptions.ts';

/** ElevenLabs (https://elevenlabs.io/docs/api-reference): `https://api.elevenlabs.io/v1`. */
export function createElevenLabs({ name, baseUrl, apiKey }: VendorOptions): Offering<'transcribe' | 'speak'> {
  const http = createHttpClient({
    vendor: name,
    baseUrl,
    headers: { 'xi-api-key': apiKey },
    secret: apiKey,
    toStatusError: (status, body, headers) => toError(name, apiKey, status, body, headers),
  });
  return {
    name,
    transcribe: elevenLabsTranscriptions(http),
    speak: elevenLabsSpeech(http),
    close: () => http.close(),
  };
}

/**
 * `{"detail": {status, message}}` (https://help.elevenlabs.io/hc/en-us/articles/19572237925521), from newer endpoints with a
 * `code`, and FastAPI's list of faults for malformed fields.
 */
function toError(name: string, secret: string, status: number, body: string, headers: HttpHeaders): ApiError {
  const { message, param, status: older, code = older } = readDetail(body);
  const details = readVendorError(message === undefined ? body : JSON.stringify({ message, param, code }), secret);
  const wait = readRetryAfter(headers);
  // A voice that the vendor does not know is the caller's fault, whatever the status.
  if (code === 'voice_not_found') return vendorError(name, 400, { ...details, param: 'voice' }, wait);
  return vendorError(name, details.code === 'model_not_found' ? 404 : status, details, wait);
}

function readDetail(body: string): JsonObject {
  try {
    const parsed: unknown = JSON.parse(body);
    return isObject(parsed) && isObject(parsed.detail) ? parsed.detail : {};
  } catch {
    return {};
  }
}
