import { useDebouncedValue } from '@mantine/hooks';
import { useNavigate, useSearch } from '@tanstack/react-router';
import { useEffect, useRef, useState } from 'react';

/** Names of searches in an address: a page with two lists has one for each. */
type SearchName = 'search' | 'users' | 'keys';

/** What is searched for in lists, by name. */
export type ListSearch = { readonly [Name in SearchName]?: string };

/** Reads searches of these names from an address. */
export function readListSearch(...names: readonly SearchName[]): (given: Record<string, unknown>) => ListSearch {
  return (given) =>
    Object.fromEntries(
      names.flatMap((name) => {
        // What looks like a number or true arrives as one.
        const text = ['string', 'number', 'boolean'].includes(typeof given[name]) ? String(given[name]) : '';
        return text === '' ? [] : [[name, text.slice(0, 200)]];
      }),
    );
}

/** What is typed, and what it searches for a moment later. */
interface TypedSearch {
  readonly text: string;
  readonly search: string;
  readonly setText: (text: string) => void;
}

/**
 * What is searched for in a list. It is in the address, so that a page that is read anew, shared or returned to shows the same.
 * @param clean what is left of a text that is typed or pasted: only that is sent, or put into the address
 */
export function useListSearch(name: SearchName, clean = (text: string): string => text.trim()): TypedSearch {
  const { [name]: shown = '' } = useSearch({ strict: false }) as ListSearch;
  const navigate = useNavigate();
  const [text, setText] = useState(shown);
  const [search] = useDebouncedValue(clean(text), 250);
  const last = useRef(shown);
  useEffect(() => {
    if (search === last.current) return;
    last.current = search;
    const change = (before: object) => ({ ...before, [name]: search === '' ? undefined : search });
    void navigate({ to: '.', search: change as never, replace: true, resetScroll: false });
  }, [search, name, navigate]);
  useEffect(() => {
    // A link or the browser has changed it, not what is typed here.
    if (shown === last.current) return;
    last.current = shown;
    setText(shown);
  }, [shown]);
  return { text, search, setText };
}
