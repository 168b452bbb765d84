import type { UsageRow } from '../../api/usage.ts';
import type { TimePoint } from '../../charts/time-chart.tsx';
import { dayOf, fullDayOf, hourOf, time } from '../../format/time.ts';

const hourMs = 3_600_000;

/** The start of the bucket that contains a time, in the user's time zone. */
function bucketOf(at: number, size: 'hour' | 'day'): number {
  // Hours are those of the gateway: one that comes twice, when clocks are set back, has one local time.
  return size === 'hour' ? at - (at % hourMs) : new Date(at).setHours(0, 0, 0, 0);
}

/** The next bucket: days are counted by the calendar, since one of them may have 23 or 25 hours. */
function nextBucket(at: number, size: 'hour' | 'day'): number {
  if (size === 'hour') return at + hourMs;
  const time = new Date(at);
  return time.setDate(time.getDate() + 1);
}

/** One point for every hour or day of a span, even without requests: an axis with gaps would mislead. */
export function usageSeries(
  rows: readonly UsageRow[],
  span: { readonly from: number; readonly to: number },
  size: 'hour' | 'day',
): TimePoint[] {
  // The gateway's days use one offset all year: under the other one they start an hour before or after midnight.
  const inside = size === 'hour' ? 0 : 6 * hourMs;
  const byTime = new Map(rows.map((row) => [bucketOf(Number(row.group) + inside, size), row]));
  // The hours of one day need no date along the axis.
  const isLong = span.to - span.from > 25 * hourMs;
  const points: TimePoint[] = [];
  for (let at = bucketOf(span.from, size); at < span.to; at = nextBucket(at, size)) {
    const row = byTime.get(at);
    points.push({
      at,
      label: size === 'day' ? dayOf(at) : isLong ? `${dayOf(at)}, ${hourOf(at)}` : hourOf(at),
      name: size === 'day' ? fullDayOf(at) : time(at),
      cost: row?.cost ?? 0,
      requests: row?.requests ?? 0,
      succeeded: row === undefined ? 0 : row.requests - row.failed - row.cancelled,
      failed: row?.failed ?? 0,
      cancelled: row?.cancelled ?? 0,
      input_tokens: row?.input_tokens ?? 0,
      output_tokens: row?.output_tokens ?? 0,
      saved: row?.saved ?? 0,
      average_ms: row?.average_ms ?? null,
      average_first_ms: row?.average_first_ms ?? null,
    });
  }
  return points;
}
