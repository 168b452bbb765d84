import { type RefObject, useEffect, useLayoutEffect, useRef } from 'react';

/**
 * Keeps the end of a growing list in view while the user is there; after scrolling up, the position stays until something is
 * added.
 * @param count number of items in the list
 */
export function useFollowedEnd(count: number): {
  readonly list: RefObject<HTMLDivElement | null>;
  readonly end: RefObject<HTMLDivElement | null>;
} {
  const list = useRef<HTMLDivElement>(null);
  const end = useRef<HTMLDivElement>(null);
  const isFollowing = useRef(false);
  useLayoutEffect(() => {
    isFollowing.current = count > 0;
  }, [count]);
  useEffect(() => {
    if (list.current === null || end.current === null) return;
    const seen = new IntersectionObserver((entries) => {
      isFollowing.current = entries.at(-1)?.isIntersecting === true;
    });
    const grown = new ResizeObserver(() => {
      if (isFollowing.current) end.current?.scrollIntoView({ block: 'nearest' });
    });
    seen.observe(end.current);
    grown.observe(list.current);
    return () => {
      seen.disconnect();
      grown.disconnect();
    };
  }, []);
  return { list, end };
}
