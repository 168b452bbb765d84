import {
  extraContent,
  readExtraContent,
  writeThoughtSignature,
} from '../../../shared/capabilities/thought-signature.ts';
import { fieldsOf, numberOf, objectsOf } from '../../../shared/capabilities/vendor-values.ts';

type Fields = Record<string, unknown>;

/** A piece of a chat's output, in order. */
export type SaidPiece =
  | { readonly kind: 'text' | 'refusal' | 'thinking'; readonly text: string }
  /** The signature of the thinking before it. */
  | { readonly kind: 'signature'; readonly signature: string }
  /** Google's signature of the text before it. Shown only before a call, as only calls need it. */
  | { readonly kind: 'text signature'; readonly signature: string }
  /** Thinking that only its vendor can read. */
  | { readonly kind: 'redacted'; readonly data: string }
  | SaidCall;

interface SaidCall {
  readonly kind: 'call';
  /** The call's index among the calls. */
  readonly call: number;
  readonly id?: string;
  readonly name?: string;
  /** A piece of its arguments. */
  readonly text: string;
}

/**
 * Splits a delta, or the message of a whole answer, into pieces. Reasoning comes as `reasoning_content` (DeepSeek's name,
 * which most vendors adopted) or `reasoning`; its signatures as `thinking_blocks`, as in requests for earlier turns.
 * Google's are fields of the text or call that they belong to; a call's becomes a piece before it, with the call's id.
 */
export function saidBy(said: Fields): SaidPiece[] {
  const pieces: SaidPiece[] = [];
  const reasoning = isText(said.reasoning_content) ? said.reasoning_content : said.reasoning;
  const thoughts = objectsOf(said.thinking_blocks);
  const offsets: readonly unknown[] = Array.isArray(said.thinking_offsets) ? said.thinking_offsets : [];
  // A whole message contains its thoughts twice; the blocks have each beside its signature.
  const isInBlocks =
    isText(reasoning) && thoughts.map(({ thinking }) => (isText(thinking) ? thinking : '')).join('') === reasoning;
  if (isText(reasoning) && !isInBlocks) pieces.push({ kind: 'thinking', text: reasoning });
  const { content } = said;
  const text = isText(content) ? content : '';
  let shown = 0;
  for (const [position, { type, thinking, signature, data }] of thoughts.entries()) {
    // A whole message has the offsets of its thoughts in the text; without them the thoughts come first.
    const before = isInBlocks || !isText(reasoning) ? numberOf(offsets[position]) : 0;
    if (before > shown && before <= text.length) {
      pieces.push({ kind: 'text', text: text.slice(shown, before) });
      shown = before;
    }
    if (type === 'redacted_thinking') pieces.push({ kind: 'redacted', data: isText(data) ? data : '' });
    else {
      if (isInBlocks && isText(thinking)) pieces.push({ kind: 'thinking', text: thinking });
      if (isText(signature)) pieces.push({ kind: 'signature', signature });
    }
  }
  if (shown < text.length) pieces.push({ kind: 'text', text: text.slice(shown) });
  if (isText(said.refusal)) pieces.push({ kind: 'refusal', text: said.refusal });
  const textSignature = readExtraContent(said);
  if (textSignature !== undefined) pieces.push({ kind: 'text signature', signature: textSignature });
  for (const [position, call] of objectsOf(said.tool_calls).entries()) {
    const { name, arguments: text } = fieldsOf(call.function);
    const signature = readExtraContent(call);
    if (signature !== undefined && isText(call.id)) {
      pieces.push({ kind: 'signature', signature: writeThoughtSignature({ callId: call.id, signature }) });
    }
    pieces.push({
      kind: 'call',
      call: numberOf(call.index, position),
      ...(isText(call.id) && { id: call.id }),
      ...(isText(name) && { name }),
      text: isText(text) ? text : '',
    });
  }
  return pieces;
}

/** Joins adjacent texts, and the pieces of each call at its start. */
export function joinPieces(pieces: readonly SaidPiece[]): SaidPiece[] {
  const joined: SaidPiece[] = [];
  const calls = new Map<number, number>();
  for (const piece of pieces) {
    const last = joined.at(-1);
    if (piece.kind === 'call') {
      const at = calls.get(piece.call);
      if (at === undefined) calls.set(piece.call, joined.push(piece) - 1);
      else joined[at] = joinCalls(joined[at] as SaidCall, piece);
    } else if ('text' in piece && last?.kind === piece.kind) {
      joined[joined.length - 1] = { ...piece, text: last.text + piece.text };
    } else {
      joined.push(piece);
    }
  }
  return joined;
}

/** The first id and name take precedence. */
function joinCalls(call: SaidCall, more: SaidCall): SaidCall {
  return { ...more, ...call, text: call.text + more.text };
}

/** Makes the delta of a chat for a piece: `saidBy` parses it back. */
export function deltaOf(piece: SaidPiece): Fields {
  switch (piece.kind) {
    case 'text':
      return { content: piece.text };
    case 'refusal':
      return { refusal: piece.text };
    case 'thinking':
      return { reasoning_content: piece.text };
    case 'signature':
      return { thinking_blocks: [{ type: 'thinking', signature: piece.signature }] };
    case 'text signature':
      return extraContent(piece.signature);
    case 'redacted':
      return { thinking_blocks: [{ type: 'redacted_thinking', data: piece.data }] };
    case 'call': {
      const { call, id, name, text } = piece;
      return { tool_calls: [{ index: call, id, type: 'function', function: { name, arguments: text } }] };
    }
  }
}

function isText(value: unknown): value is string {
  return typeof value === 'string' && value !== '';
}
