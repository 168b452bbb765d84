import type { VendorCall } from './vendor.ts';

/** The request's text with the model, and what a stream needs, put before its first field: it is passed on unread. */
export function composeRequest({ model, stream, request }: Pick<VendorCall, 'model' | 'stream' | 'request'>): string {
  const fields = request.slice(request.indexOf('{') + 1);
  const options = fields.startsWith('"stream_options":') ? '' : ',"stream_options":{"include_usage":true}';
  const streaming = stream ? `,"stream":true${options}` : '';
  const separator = /^\s*\}/.test(fields) ? '' : ',';
  return `{"model":${JSON.stringify(model)}${streaming}${separator}${fields}`;
}
