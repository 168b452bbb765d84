import { z } from 'zod';
import type { BrokenRule } from './chat-tools.ts';
import { brokenTextRule, type TextOrTokens } from './text-or-tokens.ts';

const penalty = z.number().min(-2).max(2).nullish();

const fields = z.looseObject({
  model: z.string().min(1).max(256),
  prompt: z.union([z.string(), z.array(z.unknown())]).nullable(),
  suffix: z.string().nullish(),
  echo: z.boolean().nullish(),
  best_of: z.int().min(0).max(20).nullish(),
  n: z.int().min(1).max(128).nullish(),
  logprobs: z.int().min(0).max(5).nullish(),
  max_tokens: z.int().min(0).nullish(),
  temperature: z.number().min(0).max(2).nullish(),
  top_p: z.number().min(0).max(1).nullish(),
  stop: z.union([z.string(), z.array(z.string()).min(1).max(4)]).nullish(),
  presence_penalty: penalty,
  frequency_penalty: penalty,
  logit_bias: z.record(z.string(), z.number().min(-100).max(100)).nullish(),
  // 64 bits, more than z.int() takes; beyond 2^53 JavaScript rounds it.
  seed: z
    .number()
    .multipleOf(1)
    .min(-(2 ** 63))
    .max(2 ** 63)
    .nullish(),
  stream: z.boolean().nullish(),
  stream_options: z
    .looseObject({ include_usage: z.boolean().optional(), include_obfuscation: z.boolean().optional() })
    .nullish(),
  user: z.string().optional(),
});

/**
 * A legacy completion request as a caller sends it. Unknown fields are kept. A job holds it without `model`, `stream` and
 * `stream_options`.
 */
export interface CompletionRequest extends Readonly<z.infer<typeof fields>> {
  readonly prompt: TextOrTokens | null;
}

/** The schema of OpenAI's `CreateCompletionRequest` (https://platform.openai.com/docs/api-reference/completions/create). */
export const completionRequest = z.compile(
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
