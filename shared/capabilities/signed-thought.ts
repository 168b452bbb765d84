import { readThoughtSignature } from './thought-signature.ts';

/**
 * A thought of Claude's, to be sent back as it is: without it, Claude does not think on after a tool's result
 * (https://platform.claude.com/docs/en/build-with-claude/extended-thinking#preserving-thinking-blocks).
 */
export type SignedThought =
  | { readonly type: 'thinking'; readonly thinking: string; readonly signature: string }
  | { readonly type: 'redacted_thinking'; readonly data: string };

/** The signature is preceded by its length, so that any text can follow it. */
const signed = /^anthropic:(\d{1,7}):/;
const redacted = 'anthropic:redacted:';

/**
 * Encodes a thought as one text: the `encrypted_content` of a reasoning item, which clients send back unread. The item's own text is
 * not enough, since clients may leave it out. OpenAI's own content never starts this way.
 */
export function writeSignedThought(thought: SignedThought): string {
  if (thought.type === 'redacted_thinking') return `${redacted}${thought.data}`;
  return `anthropic:${thought.signature.length}:${thought.signature}${thought.thinking}`;
}

/** Decodes the output of `writeSignedThought`; undefined for anything else. */
export function readSignedThought(text: unknown): SignedThought | undefined {
  if (typeof text !== 'string') return undefined;
  if (text.startsWith(redacted)) {
    const data = text.slice(redacted.length);
    return data === '' ? undefined : { type: 'redacted_thinking', data };
  }
  const [head, length] = signed.exec(text) ?? [];
  if (head === undefined || length === undefined) return undefined;
  const end = head.length + Number(length);
  const signature = text.slice(head.length, end);
  if (signature === '') return undefined;
  return { type: 'thinking', thinking: text.slice(end), signature };
}

const unsigned = 'chat-reasoning:';

/**
 * Encodes reasoning of a chat whose vendor signs nothing, as the `encrypted_content` of its item. Clients without storage send back only
 * that, and leave out items that lack it. OpenAI's own content never starts this way.
 */
export function writeUnsignedThought(text: string): string {
  return `${unsigned}${text}`;
}

/** Decodes the output of `writeUnsignedThought`; undefined for anything else. */
export function readUnsignedThought(encrypted: unknown): string | undefined {
  if (typeof encrypted !== 'string' || !encrypted.startsWith(unsigned)) return undefined;
  return encrypted.slice(unsigned.length);
}

/** Whether the gateway itself has made the encrypted content of a reasoning item: of a chat's reasoning, signed or not, or of a signature of Google's. */
export function carriesThought(encrypted: unknown): boolean {
  const readers = [readSignedThought, readThoughtSignature, readUnsignedThought];
  return readers.some((read) => read(encrypted) !== undefined);
}
