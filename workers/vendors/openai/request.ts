import type { VendorCall } from '../vendor.ts';

/**
 * Prepends the model, and the fields of a stream, to the request's text, which is passed on unread.
 * @param asksUsage `false`: the vendor does not support `stream_options`
 */
export function composeRequest({
  model,
  stream,
  request,
  asksUsage = true,
}: Pick<VendorCall, 'model' | 'stream' | 'request'> & { asksUsage?: boolean | undefined }): string {
  const fields = request.slice(request.indexOf('{') + 1);
  const isAsked = !asksUsage || fields.startsWith('"stream_options":');
  const options = isAsked ? '' : ',"stream_options":{"include_usage":true}';
  const streaming = stream ? `,"stream":true${options}` : '';
  const separator = /^\s*\}/.test(fields) ? '' : ',';
  return `{"model":${JSON.stringify(model)}${streaming}${separator}${fields}`;
}
