import type { ChatDeviations } from '../../../shared/vendors/vendor-description.ts';
import { isObject, type JsonObject } from '../support/json-object.ts';

/** What puts a vendor's reasoning into `reasoning_content`, and its content into one text, in place. Undefined where they are so. */
export function adaptSaid({ reasoning }: ChatDeviations): ((said: JsonObject) => void) | undefined {
  if (reasoning === undefined) return undefined;
  return reasoning === 'reasoning' ? renameReasoning : takeParts;
}

/** A vendor that says it under both names says it once. */
function renameReasoning(said: JsonObject): void {
  if (typeof said.reasoning !== 'string') return;
  if (typeof said.reasoning_content !== 'string') said.reasoning_content = said.reasoning;
  said.reasoning = undefined;
}

/** Mistral's reasoning models say parts: `{type: 'thinking', thinking: [{type: 'text', text}]}` and texts. */
function takeParts(said: JsonObject): void {
  if (!Array.isArray(said.content)) return;
  const parts = said.content.filter(isObject);
  const thinking = parts.flatMap(({ type, thinking }) =>
    type === 'thinking' && Array.isArray(thinking) ? thinking : [],
  );
  const reasoning = joinTexts(thinking.filter(isObject));
  if (reasoning !== '') said.reasoning_content = reasoning;
  const content = joinTexts(parts);
  said.content = content === '' && reasoning !== '' ? null : content;
}

function joinTexts(parts: readonly JsonObject[]): string {
  return parts.map(({ text }) => (typeof text === 'string' ? text : '')).join('');
}
