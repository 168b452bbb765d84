type Fields = Readonly<Record<string, unknown>>;

/** What Google vouches with for a thought, to be sent back with the part that came of it. */
export interface ThoughtSignature {
  /** The call that it was said with; left out: the text before any call. */
  readonly callId?: string;
  readonly signature: string;
}

/**
 * The signature of a chat's message or tool call, where Google's own OpenAI endpoint has it, or undefined
 * (https://ai.google.dev/gemini-api/docs/thought-signatures).
 */
export function readExtraContent({ extra_content: extra }: Fields): string | undefined {
  const signature = fieldsOf(fieldsOf(extra).google).thought_signature;
  return typeof signature === 'string' && signature !== '' ? signature : undefined;
}

/** The field that holds a signature in a message or a tool call of a chat. */
export function extraContent(signature: string): { readonly extra_content: Fields } {
  return { extra_content: { google: { thought_signature: signature } } };
}

/** Its length stands before the signature, so that any id can follow it. */
const carried = /^google:(\d{1,7}):/;

/**
 * A signature as one text, for the views that have no other place for it than those where clients send back what they cannot
 * read: the signature of a `thinking` block, and the `encrypted_content` of a reasoning item. No vendor's own text begins so.
 */
export function writeThoughtSignature({ callId = '', signature }: ThoughtSignature): string {
  return `google:${signature.length}:${signature}${callId}`;
}

/** Reads what `writeThoughtSignature` wrote; undefined for anything else. */
export function readThoughtSignature(text: unknown): ThoughtSignature | undefined {
  const [head, length] = (typeof text === 'string' ? carried.exec(text) : null) ?? [];
  if (head === undefined || length === undefined) return undefined;
  const end = head.length + Number(length);
  const signature = String(text).slice(head.length, end);
  if (signature === '') return undefined;
  const callId = String(text).slice(end);
  return { ...(callId !== '' && { callId }), signature };
}

function fieldsOf(value: unknown): Fields {
  return typeof value === 'object' && value !== null ? (value as Fields) : {};
}
