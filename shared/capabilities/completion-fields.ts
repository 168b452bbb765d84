import { z } from 'zod';

/** A penalty for tokens that occurred before. */
export const penalty = z.number().min(-2).max(2).nullish();

/** The parameters shared by chat completions and legacy completions, with the bounds in OpenAI's API reference. */
export const completionFields = {
  stream: z.boolean().nullish(),
  stream_options: z
    .looseObject({ include_usage: z.boolean().optional(), include_obfuscation: z.boolean().optional() })
    .nullish(),
  temperature: z.number().min(0).max(2).nullish(),
  top_p: z.number().min(0).max(1).nullish(),
  n: z.int().min(1).max(128).nullish(),
  stop: z.union([z.string(), z.array(z.string()).min(1).max(4)]).nullish(),
  presence_penalty: penalty,
  frequency_penalty: penalty,
  logit_bias: z.record(z.string(), z.number().min(-100).max(100)).nullish(),
  // 64 bits, more than z.int() accepts; beyond 2^53 JavaScript rounds it.
  seed: z
    .number()
    .multipleOf(1)
    .min(-(2 ** 63))
    .max(2 ** 63)
    .nullish(),
  user: z.string().optional(),
};
