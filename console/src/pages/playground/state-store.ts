import { useSyncExternalStore } from 'react';

/** State that outlives its components: a tab or page that is left is restored on return. */
export class StateStore<Value extends object> {
  #value: Value;
  readonly #listeners = new Set<() => void>();

  constructor(initial: Value) {
    this.#value = initial;
  }

  readonly get = (): Value => this.#value;

  /** Changes some of its members. */
  readonly set = (change: Partial<Value>): void => {
    this.#value = { ...this.#value, ...change };
    for (const listener of this.#listeners) listener();
  };

  readonly subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  };
}

/** A store's value in a component, which rerenders when it changes. */
export function useStore<Value extends object>(store: StateStore<Value>): Value {
  return useSyncExternalStore(store.subscribe, store.get);
}
