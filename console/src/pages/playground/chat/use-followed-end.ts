import { type RefObject, useEffect, useLayoutEffect, useRef } from 'react';

/**
 * Keeps the end of a list that grows in sight while its reader is there; who has scrolled up to read is left alone until
 * something is added. @param count of what is in the list
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
