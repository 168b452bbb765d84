import { useState } from 'react';
import { useSession } from '../api/session.ts';
import { forgetInTab, keepInTab, keptInTab } from '../api/tab-storage.ts';

/** What a form starts with, and how its values are stored. */
interface KeptForm<Values> {
  readonly initial: Values;
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
  const [initial] = useState<Values>(() => ({ ...empty, ...JSON.parse(keptInTab(name, user) ?? '{}') }));
  return {
    initial,
    keep: (values) => keepInTab(name, user, JSON.stringify(values)),
    forget: () => forgetInTab(name),
  };
}
