import type { Model } from '../shared/catalogue/model.ts';
import { seconds } from './chat-models.ts';

/** The day a vendor shuts a model down, and the model it recommends instead, if the catalogue has it. */
interface Shutdown {
  readonly day: string;
  readonly replacement?: string;
}

/** One entry for each id. */
function all(ids: readonly string[], day: string, replacement?: string): [string, Shutdown][] {
  return ids.map((id) => [id, { day, ...(replacement !== undefined && { replacement }) }]);
}

/**
 * Shutdowns that vendors have announced. OpenAI's: https://developers.openai.com/api/docs/deprecations as of 2026-11; ids
 * without a date are listed only if the page names them. Anthropic's: `DEPRECATED_MODELS` of @anthropic-ai/sdk 1.12.0, whose page is
 * https://platform.claude.com/docs/en/about-claude/model-deprecations.
 */
export const shutdowns: Readonly<Record<string, Shutdown>> = Object.fromEntries([
  ...all(['claude-sonnet-4-5', 'claude-sonnet-4-5-20250929'], '2026-11-30', 'claude-sonnet-5-5'),
  ...all(['dall-e-2', 'dall-e-3'], '2026-05-12', 'gpt-image-2'),
  ...all(['gpt-image-1'], '2026-10-23', 'gpt-image-2'),
  ...all(['gpt-image-1-mini', 'gpt-image-1.5', 'chatgpt-image-latest'], '2026-12-01', 'gpt-image-2'),
  ...all(['gpt-5', 'gpt-5-2025-08-07'], '2026-12-11', 'gpt-6.1-sol'),
  ...all(['gpt-5-mini', 'gpt-5-mini-2025-08-07'], '2026-12-11', 'gpt-6.1-terra'),
  ...all(['gpt-5-nano', 'gpt-5-nano-2025-08-07'], '2026-12-11', 'gpt-5.6-luna'),
  ...all(['o3', 'o3-2025-04-16'], '2026-12-11', 'gpt-5.6-sol'),
  ...all(['tts-1', 'tts-1-hd', 'gpt-4o-mini-tts', 'gpt-4o-mini-tts-2025-12-15'], '2027-01-06'),
  ...all(['gpt-4o-2024-08-06', 'gpt-4o-2024-11-20', 'gpt-4o-mini-2024-07-18'], '2027-01-14', 'gpt-6-luna'),
  ...all(['gpt-4.1-2025-04-14', 'gpt-4.1-mini-2025-04-14'], '2027-01-14', 'gpt-6-luna'),
  ...all(['whisper-1', 'gpt-4o-transcribe', 'gpt-4o-mini-transcribe', 'gpt-4o-transcribe-diarize'], '2027-02-26'),
  ...all(['gpt-5.1', 'gpt-5.1-2025-11-13', 'gpt-5.4-nano', 'gpt-5.4-nano-2026-03-17'], '2027-04-01'),
]);

/** The row with the announced shutdown of its model; it is marked as retired if that is past. */
export function withShutdown(model: Model, now: Date): Model {
  const shutdown = shutdowns[model.id];
  if (shutdown === undefined) return model;
  const { day, replacement } = shutdown;
  const deprecatedAt = seconds(day);
  return {
    ...model,
    deprecatedAt,
    ...(replacement !== undefined && { replacement }),
    ...(deprecatedAt * 1000 <= now.getTime() && { retired: true }),
  };
}
