import { createHttpClient } from '../../http/http-client.ts';
import { readRetryAfter, readVendorError } from '../support/read-vendor-error.ts';
import type { Offering } from '../vendor.ts';
import { vendorError } from '../vendor-error.ts';
import type { VendorOptions } from '../vendor-options.ts';
import { assemblyAiTranscriptions } from './transcriptions.ts';

/** AssemblyAI (https://www.assemblyai.com/docs): `https://api.assemblyai.com/v2`. Its errors are `{"error": "…"}`. */
export function createAssemblyAi({ name, baseUrl, apiKey }: VendorOptions): Offering<'transcribe'> {
  const http = createHttpClient({
    vendor: name,
    baseUrl,
    headers: { authorization: apiKey },
    secret: apiKey,
    toStatusError: (status, body, headers) =>
      vendorError(name, status, readVendorError(body, apiKey), readRetryAfter(headers)),
  });
  return { name, transcribe: assemblyAiTranscriptions(http, apiKey), close: () => http.close() };
}
