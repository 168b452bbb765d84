import type { ChatDeviations } from '../../../shared/vendors/vendor-description.ts';
import { isObject, type JsonObject } from '../support/json-object.ts';
import { CallSignatures } from './reasoning-details.ts';
import type { AnswerAdapter } from './shape.ts';

/**
 * Returns what makes, for each answer, a function that moves reasoning into `reasoning_content`, makes content one text and signs calls,
 * in place; undefined if not needed.
 */
export function adaptAnswer({ reasoning, signatures }: ChatDeviations): AnswerAdapter | undefined {
  if (reasoning === undefined) return undefined;
  const adapt = reasoning === 'reasoning' ? renameReasoning : joinParts;
  if (signatures === undefined) return () => adapt;
  return () => {
    const ofCalls = new CallSignatures();
    return (message) => {
      adapt(message);
      ofCalls.sign(message);
    };
  };
}

/** A vendor that sends it under both names gets one removed. */
function renameReasoning(message: JsonObject): void {
  if (typeof message.reasoning !== 'string') return;
  if (typeof message.reasoning_content !== 'string') message.reasoning_content = message.reasoning;
  message.reasoning = undefined;
}

/** Mistral's reasoning models send parts: `{type: 'thinking', thinking: [{type: 'text', text}]}` and texts. */
function joinParts(message: JsonObject): void {
  if (!Array.isArray(message.content)) return;
  const parts = message.content.filter(isObject);
  const thinking = parts.flatMap(({ type, thinking }) =>
    type === 'thinking' && Array.isArray(thinking) ? thinking : [],
  );
  const reasoning = joinTexts(thinking.filter(isObject));
  if (reasoning !== '') message.reasoning_content = reasoning;
  const content = joinTexts(parts);
  message.content = content === '' && reasoning !== '' ? null : content;
}

function joinTexts(parts: readonly JsonObject[]): string {
  return parts.map(({ text }) => (typeof text === 'string' ? text : '')).join('');
}
