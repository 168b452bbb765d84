import { z } from 'zod';
import type { BrokenRule } from './chat.ts';
import { compiledOnUse } from './compiled-on-use.ts';
import { completionFields } from './completion-fields.ts';
import { brokenTextRule, type TextOrTokens } from './text-or-tokens.ts';

/** OpenAI's own default of `max_tokens`, of which a chat and some vendors' completions have none. */
export const defaultMaxTokens = 16;

const fields = z.looseObject({
  model: z.string().min(1).max(256),
  prompt: z.union([z.string(), z.array(z.unknown())]).nullable(),
  ...completionFields,
  suffix: z.string().nullish(),
  echo: z.boolean().nullish(),
  best_of: z.int().min(0).max(20).nullish(),
  logprobs: z.int().min(0).max(5).nullish(),
  max_tokens: z.int().min(0).nullish(),
});

/**
 * A legacy completion request as a caller sends it. Unknown fields are kept. The job's copy lacks `model`, `stream` and
 * `stream_options`.
 */
export interface CompletionRequest extends Readonly<z.infer<typeof fields>> {
  readonly prompt: TextOrTokens | null;
}

/** The schema of OpenAI's `CreateCompletionRequest` (https://platform.openai.com/docs/api-reference/completions/create). */
export const completionRequest = compiledOnUse(
  fields.check(({ value, issues }) => {
    const broken = brokenRule(value);
    if (broken) issues.push({ code: 'custom', input: value, path: broken.path, message: broken.message });
  }),
);

function brokenRule(request: z.infer<typeof fields>): BrokenRule | undefined {
  const { prompt, best_of: bestOf, stream } = request;
  if (request.stream_options != null && stream !== true) {
    return { path: ['stream_options'], message: "it is only allowed when 'stream' is enabled" };
  }
  const n = request.n ?? 1;
  if (bestOf != null && bestOf < n) {
    return {
      path: ['best_of'],
      message:
        'You requested that the server return more choices than it will generate (HINT: you must set ' +
        `'n' (currently ${n}) to be at most 'best_of' (currently ${bestOf}), or omit either parameter if you don't ` +
        'specifically want to use them.)',
    };
  }
  if (bestOf != null && bestOf > n && stream === true) {
    return { path: ['best_of'], message: "results cannot be streamed when 'best_of' is greater than 'n'" };
  }
  return prompt === null ? undefined : brokenTextRule(prompt, { name: 'prompt', emptyTexts: true });
}
