/**
 * The part of a caller's `stream_options` for the vendor, which precedes all other fields of the request, where the vendor's
 * adapter looks for it. Usage is always requested; the gateway decides who sees it.
 */
export function forwardedStreamOptions(options: Record<string, unknown> | null | undefined): {
  stream_options?: Record<string, unknown>;
} {
  const { include_usage: _, ...others } = options ?? {};
  return Object.keys(others).length === 0 ? {} : { stream_options: { include_usage: true, ...others } };
}
