import { fieldsOf } from './vendor-values.ts';

type Fields = Readonly<Record<string, unknown>>;

/** Google's signature of a thought, to be sent back with the part it belongs to. */
export interface ThoughtSignature {
  /** The call it belongs to; left out: the text before any call. */
  readonly callId?: string;
  readonly signature: string;
}

/**
 * The signature in a chat's message or tool call, in the field of Google's own OpenAI endpoint, or undefined
 * (https://ai.google.dev/gemini-api/docs/thought-signatures).
 */
export function readExtraContent({ extra_content: extra }: Fields): string | undefined {
  const signature = fieldsOf(fieldsOf(extra).google).thought_signature;
  return typeof signature === 'string' && signature !== '' ? signature : undefined;
}

/** The field for a signature in a message or a tool call of a chat. */
export function extraContent(signature: string): { readonly extra_content: Fields } {
  return { extra_content: { google: { thought_signature: signature } } };
}

/** The field for the result of a call that failed, in a tool's message of a chat: its text begins with `failedPrefix`, too. */
export const failedResult = { extra_content: { anthropic: { is_error: true } } } as const;

/** The beginning of a failed result's text, for vendors that have no field for it. */
export const failedPrefix = 'Error: ';

/** Whether a tool's message of a chat is the result of a call that failed. */
export function isFailedResult({ extra_content: extra }: Fields): boolean {
  return fieldsOf(fieldsOf(extra).anthropic).is_error === true;
}

/** The signature is preceded by its length, so that any id can follow it. */
const carried = /^google:(\d{1,7}):/;

/**
 * Encodes a signature as one text, for views that can carry it only in fields that clients send back unread: the signature of a
 * `thinking` block, and the `encrypted_content` of a reasoning item. No vendor's own text starts this way.
 */
export function writeThoughtSignature({ callId = '', signature }: ThoughtSignature): string {
  return `google:${signature.length}:${signature}${callId}`;
}

/** Decodes the output of `writeThoughtSignature`; undefined for anything else. */
export function readThoughtSignature(text: unknown): ThoughtSignature | undefined {
  const [head, length] = (typeof text === 'string' ? carried.exec(text) : null) ?? [];
  if (head === undefined || length === undefined) return undefined;
  const end = head.length + Number(length);
  const signature = String(text).slice(head.length, end);
  if (signature === '') return undefined;
  const callId = String(text).slice(end);
  return { ...(callId !== '' && { callId }), signature };
}
