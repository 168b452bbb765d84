import { fieldsOf, numberOf, objectsOf } from './vendor-values.ts';

type Fields = Record<string, unknown>;

/** No caller's model makes more at once; those of a vendor that sends very many stay together, as frames cost more than calls. */
const maxCalls = 128;

/**
 * Splits a chunk of a chat with several tool calls of a choice into chunks with one each, as OpenAI sends them: clients that know
 * no others read the first call and lose the rest (LlamaIndex). All else is in the first of them, except that a choice finishes
 * with its last call.
 */
export function oneCallEach(chunk: Fields): Fields[] {
  const later: Fields[][] = [];
  const firstChoices = objectsOf(chunk.choices).map((choice) => {
    const { delta, finish_reason: finish } = choice;
    const calls = objectsOf(fieldsOf(delta).tool_calls);
    if (calls.length < 2 || calls.length > maxCalls) return choice;
    for (const [position, call] of calls.entries()) {
      if (position === 0) continue;
      const at = position - 1;
      later[at] ??= [];
      const isLast = position === calls.length - 1;
      const more = { index: numberOf(choice.index), delta: { tool_calls: [call] } };
      later[at].push({ ...more, finish_reason: isLast ? finish : null });
    }
    return { ...choice, delta: { ...fieldsOf(delta), tool_calls: calls.slice(0, 1) }, finish_reason: null };
  });
  return later.length === 0 ? [chunk] : [{ ...chunk, choices: firstChoices }, ...later.map((choices) => ({ choices }))];
}
