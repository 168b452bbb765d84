import { useInterval } from '@mantine/hooks';
import { useMemo, useState } from 'react';
import { type SpanFilters, spanOf } from './usage-span.ts';

/** Refetch interval of usage, while its page is visible. */
export const refreshMs = 30_000;

const hourMs = 3_600_000;

/** The span of the filters. It moves on with the hours while a page stays open. */
export function useSpan({ period, from, to }: SpanFilters): { from: number; to: number } {
  const [hour, setHour] = useState(thisHour);
  useInterval(() => setHour(thisHour()), refreshMs, { autoInvoke: true });
  return useMemo(() => spanOf({ period, from, to }, hour), [period, from, to, hour]);
}

/** The last moment of the current hour: spans are of whole hours. */
function thisHour(): number {
  return Math.floor(Date.now() / hourMs) * hourMs + hourMs - 1;
}
