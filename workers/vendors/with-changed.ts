import { stringifyExact } from '../../shared/capabilities/exact-json.ts';
import type { JsonObject } from './support/json-object.ts';

/** Changes an entry of a list; returns the entry itself if nothing of it is to be changed. */
type ChangeEntry = (entry: unknown) => unknown;

/** The text of a chat with each entry of a list changed; undefined if that changes none. */
export function withChanged(chat: JsonObject, name: string, change: ChangeEntry): string | undefined {
  const given: unknown = chat[name];
  if (!Array.isArray(given)) return undefined;
  const changed = eachChanged(given, change);
  return changed === given ? undefined : stringifyExact({ ...chat, [name]: changed });
}

/** A list with each entry changed; the list itself if that changes none. */
export function eachChanged(list: readonly unknown[], change: ChangeEntry): readonly unknown[] {
  const changed = list.map(change);
  return changed.every((entry, index) => entry === list[index]) ? list : changed;
}
