import { z } from 'zod';
import { capabilities } from '../capabilities/capability.ts';

const tokens = z.int().min(1);

const model = z.strictObject({
  /** What callers name it; may hold slashes. */
  id: z.string().min(1).max(256),
  /** Release, seconds since 1970. */
  created: z.int().min(0),
  ownedBy: z.string().regex(/^[a-z0-9-]+$/),
  capability: z.enum(capabilities),
  /** Who serves it, the preferred first, and what the model is called there. */
  routes: z.array(z.strictObject({ vendor: z.string().min(1), model: z.string().min(1) })).min(1),
  /** Tokens of input and output together; absent where the vendor does not say. */
  contextWindow: tokens.optional(),
  maxOutputTokens: tokens.optional(),
});

/** One row of the catalogue. */
export type Model = Readonly<z.infer<typeof model>>;

type Limits = readonly [contextWindow: number, maxOutputTokens: number];

const million: Limits = [1_050_000, 128_000];
const fifth: Limits = [400_000, 128_000];
const longFourth: Limits = [1_047_576, 32_768];
const omni: Limits = [128_000, 16_384];
const reasoning: Limits = [200_000, 100_000];

/** A chat model of OpenAI; `released` is its day of release. */
function openai(id: string, released: string, limits?: Limits): Model {
  return {
    id,
    created: Date.parse(`${released}T00:00:00Z`) / 1000,
    ownedBy: 'openai',
    capability: 'chat',
    routes: [{ vendor: 'openai', model: id }],
    ...(limits && { contextWindow: limits[0], maxOutputTokens: limits[1] }),
  };
}

/** A chat model of the sandbox vendor. */
function sandbox(id: string): Model {
  return {
    id,
    created: Date.parse('2025-01-01T00:00:00Z') / 1000,
    ownedBy: 'sandbox',
    capability: 'chat',
    routes: [{ vendor: 'sandbox', model: id }],
  };
}

/**
 * Every model the gateway knows. Of OpenAI's: those its current client names (`ChatModel`) that speak chat completions.
 * Left out are models for audio and search only, those for its Responses API only, and those it has shut down.
 */
export const models: readonly Model[] = z
  .array(model)
  .parse([
    openai('gpt-5.6-sol', '2026-06-26'),
    openai('gpt-5.6-terra', '2026-06-26'),
    openai('gpt-5.6-luna', '2026-06-26'),
    openai('gpt-5.5', '2026-04-23', million),
    openai('gpt-5.5-2026-04-23', '2026-04-23', million),
    openai('gpt-5.4', '2026-03-05', million),
    openai('gpt-5.4-mini', '2026-03-17', fifth),
    openai('gpt-5.4-mini-2026-03-17', '2026-03-17', fifth),
    openai('gpt-5.4-nano', '2026-03-17', fifth),
    openai('gpt-5.4-nano-2026-03-17', '2026-03-17', fifth),
    openai('gpt-5.2', '2025-12-11', fifth),
    openai('gpt-5.2-2025-12-11', '2025-12-11', fifth),
    openai('gpt-5.1', '2025-11-13', fifth),
    openai('gpt-5.1-2025-11-13', '2025-11-13', fifth),
    openai('gpt-5', '2025-08-07', fifth),
    openai('gpt-5-2025-08-07', '2025-08-07', fifth),
    openai('gpt-5-mini', '2025-08-07', fifth),
    openai('gpt-5-mini-2025-08-07', '2025-08-07', fifth),
    openai('gpt-5-nano', '2025-08-07', fifth),
    openai('gpt-5-nano-2025-08-07', '2025-08-07', fifth),
    openai('gpt-4.1', '2025-04-14', longFourth),
    openai('gpt-4.1-2025-04-14', '2025-04-14', longFourth),
    openai('gpt-4.1-mini', '2025-04-14', longFourth),
    openai('gpt-4.1-mini-2025-04-14', '2025-04-14', longFourth),
    openai('o3', '2025-04-16', reasoning),
    openai('o3-2025-04-16', '2025-04-16', reasoning),
    openai('gpt-4o', '2024-05-13', omni),
    openai('gpt-4o-2024-11-20', '2024-11-20', omni),
    openai('gpt-4o-2024-08-06', '2024-08-06', omni),
    openai('gpt-4o-mini', '2024-07-18', omni),
    openai('gpt-4o-mini-2024-07-18', '2024-07-18', omni),
    sandbox('sandbox-chat'),
    sandbox('sandbox-reasoning'),
  ]);
