import type { JsonBody } from '../../http/http-client.ts';
import type { VendorCall } from '../vendor.ts';

/** What is read of a request to see which field is its first: `stream_options`, if it has that. */
const firstBytes = 64;

/**
 * Prepends the model, and the fields of a stream, to the request, which is passed on unread.
 * @param asksUsage `false`: the vendor does not support `stream_options`
 */
export function composeRequest({
  model,
  stream,
  request,
  asksUsage = true,
}: Pick<VendorCall, 'model' | 'stream' | 'request'> & { asksUsage?: boolean | undefined }): JsonBody {
  const from = request.indexOf('{') + 1;
  const first =
    typeof request === 'string'
      ? request.slice(from, from + firstBytes)
      : request.toString('latin1', from, from + firstBytes);
  const isAsked = !asksUsage || first.startsWith('"stream_options":');
  const options = isAsked ? '' : ',"stream_options":{"include_usage":true}';
  const streaming = stream ? `,"stream":true${options}` : '';
  const separator = /^\s*\}/.test(first) ? '' : ',';
  const head = `{"model":${JSON.stringify(model)}${streaming}${separator}`;
  return typeof request === 'string' ? head + request.slice(from) : [Buffer.from(head), request.subarray(from)];
}
