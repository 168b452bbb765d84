import { numberOf, objectsOf } from '../../../shared/capabilities/vendor-values.ts';
import type { Frame } from '../../../shared/jobs/append.ts';
import { addAll } from '../../../shared/runtime/collections.ts';

type Fields = Record<string, unknown>;

/**
 * Folds the chunks of a streamed legacy completion into the body of a completion without its envelope. Text and the lists of
 * `logprobs` are concatenated; other fields of a choice keep their last non-null value.
 */
export function foldCompletion(frames: readonly Frame[]): Fields {
  const choices = new Map<number, Fields>();
  const rest = new Map<string, unknown>();
  for (const frame of frames) {
    if (frame.type !== 'delta' && frame.type !== 'end') continue;
    const { choices: changed, ...fields } = JSON.parse(frame.text) as Fields & { choices?: Fields[] };
    for (const [name, value] of Object.entries(fields)) rest.set(name, value);
    for (const change of objectsOf(changed)) foldChoice(choices, change);
  }
  const inOrder = [...choices.values()].sort((one, other) => Number(one.index) - Number(other.index));
  return { choices: inOrder, ...Object.fromEntries(rest) };
}

function foldChoice(choices: Map<number, Fields>, change: Fields): void {
  const index = numberOf(change.index);
  const choice = choices.get(index) ?? { text: '', index, logprobs: null, finish_reason: null };
  choices.set(index, choice);
  for (const [name, value] of Object.entries(change)) {
    if (value === null || value === undefined || name === 'index') continue;
    if (name === 'text') choice.text += String(value);
    else if (name === 'logprobs') choice.logprobs = foldLogprobs(choice.logprobs as Fields | null, value as Fields);
    else choice[name] = value;
  }
}

function foldLogprobs(logprobs: Fields | null, change: Fields): Fields {
  const folded = logprobs ?? {};
  for (const [name, value] of Object.entries(change)) {
    const before = folded[name];
    if (Array.isArray(before) && Array.isArray(value)) addAll(before, value);
    else folded[name] = value ?? before ?? null;
  }
  return folded;
}
