import type { Extent } from './prepared-request.ts';

/**
 * The extent of a request for text.
 * @param outputTokens the caller's limit for each answer
 * @param choices how many answers are made
 */
export function extentOf(outputTokens: number | null | undefined, choices?: number | null): Extent {
  return { outputTokens: outputTokens ?? undefined, choices: choices ?? undefined };
}
