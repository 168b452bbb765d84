import { useRef, useState } from 'react';
import { useSession } from '../api/session.ts';
import { forgetInTab, keepInTab, keptInTab } from '../api/tab-storage.ts';

/** What a form starts with, and how its values are stored. */
interface KeptForm<Values> {
  readonly initial: Values;
  /** Whether it starts with what was typed before. */
  readonly isKept: boolean;
  readonly keep: (values: Values) => void;
  readonly forget: () => void;
}

/**
 * Stores in this tab what the signed-in user types into a form, so that a reload, or a session that ends before the form is
 * sent, does not lose it.
 * @param name of the form; it changes with the format of its values
 */
export function useKeptForm<Values extends object>(name: string, empty: Values): KeptForm<Values> {
  const user = useSession().user.id;
  const [{ initial, isKept }] = useState<Pick<KeptForm<Values>, 'initial' | 'isKept'>>(() => {
    const text = keptInTab(name, user);
    return { initial: { ...empty, ...JSON.parse(text ?? '{}') }, isKept: text !== undefined };
  });
  return {
    initial,
    isKept,
    keep: (values) => keepInTab(name, user, JSON.stringify(values)),
    forget: () => forgetInTab(name),
  };
}

/** The values of a small form, stored as by `useKeptForm`. */
interface KeptValues<Values> {
  readonly values: Values;
  readonly change: (part: Partial<Values>) => void;
  /** Empties the form. */
  readonly clear: () => void;
  /** Only forgets what is stored: the form is going away. */
  readonly forget: () => void;
}

/** The same for a form that has no state of its own. */
export function useKeptValues<Values extends object>(name: string, empty: Values): KeptValues<Values> {
  const { initial, keep, forget } = useKeptForm(name, empty);
  const [values, setValues] = useState(initial);
  // What is typed next need not wait for this to be drawn.
  const latest = useRef(initial);
  const set = (next: Values): void => {
    latest.current = next;
    setValues(next);
  };
  return {
    values,
    change: (part) => {
      set({ ...latest.current, ...part });
      keep(latest.current);
    },
    clear: () => {
      set(empty);
      forget();
    },
    forget,
  };
}
