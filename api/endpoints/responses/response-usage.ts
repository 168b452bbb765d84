type Counts = Readonly<Record<string, unknown>>;

/** Converts a chat's `usage` to OpenAI's `ResponseUsage`, with estimates marked; null if missing. */
export function responseUsage(usage: unknown): Counts | null {
  if (typeof usage !== 'object' || usage === null) return null;
  const { prompt_tokens: input, completion_tokens: output, total_tokens: total, ...rest } = usage as Counts;
  const { prompt_tokens_details: inputDetails, completion_tokens_details: outputDetails } = rest;
  return {
    input_tokens: count(input),
    input_tokens_details: {
      cached_tokens: count((inputDetails as Counts | null | undefined)?.cached_tokens),
      cache_write_tokens: count((inputDetails as Counts | null | undefined)?.cache_write_tokens),
    },
    output_tokens: count(output),
    output_tokens_details: { reasoning_tokens: count((outputDetails as Counts | null | undefined)?.reasoning_tokens) },
    total_tokens: typeof total === 'number' ? total : count(input) + count(output),
    ...(rest.estimated === true && { estimated: true }),
  };
}

function count(value: unknown): number {
  return typeof value === 'number' ? value : 0;
}
