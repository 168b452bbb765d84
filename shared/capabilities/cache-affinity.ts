/** Maximum characters of each end of a text that are read. */
const readCharacters = 256;

/** A turn, as far as an affinity depends on it: of a chat, a response or a message. */
export interface OpeningTurn {
  readonly role?: unknown;
  readonly content?: unknown;
}

/**
 * A short text that is the same for requests which share a prompt cache at their vendor: those with the same
 * `prompt_cache_key`, else those with the same instructions and the same first user turn. Two that differ may have the same
 * one, rarely, which only sends both to the same place. It reveals nothing of the request.
 * @param instructions before all turns
 */
export function cacheAffinity(promptCacheKey: unknown, turns: readonly OpeningTurn[], instructions?: unknown): string {
  if (typeof promptCacheKey === 'string' && promptCacheKey !== '') return `k${hashText(promptCacheKey).toString(36)}`;
  let hash = hashText(firstText(instructions));
  for (const { role, content } of turns) {
    hash = hashText(firstText(content), hash);
    if (role === 'user') break;
  }
  return `t${hash.toString(36)}`;
}

/** Whether an affinity is that of a `prompt_cache_key`, which precedes those of sessions and conversations. */
export function isOfPromptCacheKey(affinity: string): boolean {
  return affinity.startsWith('k');
}

/** The affinity of a session that its client names, or of a conversation. */
export function sessionAffinity(session: string): string {
  return `s${hashText(session).toString(36)}`;
}

/** The text of a turn, or its first part with a text. */
function firstText(content: unknown): string {
  if (typeof content === 'string') return content;
  if (!Array.isArray(content)) return '';
  const part = (content as readonly { readonly text?: unknown }[]).find((each) => typeof each?.text === 'string');
  return part === undefined ? '' : (part.text as string);
}

/** FNV-1a, 32 bits, of both ends of a text and its length: long prompts differ there, and reading all of them would cost more. */
function hashText(text: string, seed = 0x811c9dc5): number {
  let hash = Math.imul(seed ^ text.length, 0x01000193);
  const head = Math.min(text.length, readCharacters);
  for (let at = 0; at < head; at++) hash = Math.imul(hash ^ text.charCodeAt(at), 0x01000193);
  for (let at = Math.max(head, text.length - readCharacters); at < text.length; at++) {
    hash = Math.imul(hash ^ text.charCodeAt(at), 0x01000193);
  }
  return hash >>> 0;
}
