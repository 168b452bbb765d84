import type { ApiError } from '../../../shared/errors.ts';

/** OpenAI's `ResponseErrorCode`: the only codes of a response's `error`. */
const codes = new Set([
  'server_error',
  'rate_limit_exceeded',
  'invalid_prompt',
  'data_residency_mismatch',
  'bio_policy',
  'vector_store_timeout',
  'invalid_image',
  'invalid_image_format',
  'invalid_base64_image',
  'invalid_image_url',
  'image_too_large',
  'image_too_small',
  'image_parse_error',
  'image_content_policy_violation',
  'invalid_image_mode',
  'image_file_too_large',
  'unsupported_image_media_type',
  'empty_image_file',
  'failed_to_download_image',
  'image_file_not_found',
]);

/** Converts an error to the `error` of a failed response; null for a cancelled one. */
export function responseError(error: ApiError): { readonly code: string; readonly message: string } | null {
  if (error.code === 'cancelled') return null;
  return { code: codeOf(error), message: error.message };
}

function codeOf({ code, vendorCode, status }: ApiError): string {
  if (vendorCode !== null && codes.has(vendorCode)) return vendorCode;
  if (codes.has(code)) return code;
  if (status === 429) return 'rate_limit_exceeded';
  return status < 500 ? 'invalid_prompt' : 'server_error';
}
