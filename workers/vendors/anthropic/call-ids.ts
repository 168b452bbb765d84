/**
 * The ids of a conversation's calls as Anthropic takes them: of fewer characters than other vendors', and none twice, whereas some
 * vendors count anew in each turn (`call_0`). A repeated one gets a number, and each result the id of its own call.
 */
export class CallIds {
  /** Every id so far, with the highest number that was tried behind it. */
  readonly #numbers = new Map<string, number>();
  /** By the given id, those of its calls, and how many results have come for them. */
  readonly #calls = new Map<string, { readonly ids: string[]; results: number }>();

  /** The id of the next call. */
  ofCall(given: string): string {
    const id = this.#unique(toolUseId(given));
    const calls = this.#calls.get(given);
    if (calls === undefined) this.#calls.set(given, { ids: [id], results: 0 });
    else calls.ids.push(id);
    return id;
  }

  /** The id of the call that the next result is of: calls with one given id get their results in their order. */
  ofResult(given: string): string {
    const calls = this.#calls.get(given);
    const id = calls && (calls.ids[calls.results++] ?? calls.ids.at(-1));
    return id ?? toolUseId(given);
  }

  #unique(id: string): string {
    let number = this.#numbers.get(id) ?? 0;
    let unique = id;
    while (this.#numbers.has(unique)) {
      number += 1;
      unique = `${id}_${number}`;
    }
    this.#numbers.set(id, number);
    if (unique !== id) this.#numbers.set(unique, 0);
    return unique;
  }
}

/** Anthropic accepts only these characters in ids; other vendors' have more. */
function toolUseId(id: string): string {
  return id.replace(/[^a-zA-Z0-9_-]/g, '_');
}
