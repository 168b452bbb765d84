const moment = new Intl.DateTimeFormat('en-US', { dateStyle: 'medium', timeStyle: 'short', hourCycle: 'h23' });
const exact = new Intl.DateTimeFormat('en-US', {
  ...{ year: 'numeric', month: 'short', day: 'numeric', hour: '2-digit', minute: '2-digit', second: '2-digit' },
  ...{ fractionalSecondDigits: 3, hourCycle: 'h23', timeZoneName: 'short' },
} as Intl.DateTimeFormatOptions);
const day = new Intl.DateTimeFormat('en-US', { month: 'short', day: 'numeric' });
const fullDay = new Intl.DateTimeFormat('en-US', { dateStyle: 'medium' });
const hour = new Intl.DateTimeFormat('en-US', { hour: '2-digit', minute: '2-digit', hourCycle: 'h23' });
const relative = new Intl.RelativeTimeFormat('en-US', { numeric: 'auto' });

/** A time (ms since 1970) in the user's time zone: `Nov 22, 2026, 14:03`. */
export function time(at: number | null | undefined): string {
  return at === null || at === undefined ? '–' : moment.format(at);
}

/** With seconds, milliseconds and the time zone's name. */
export function exactTime(at: number | null | undefined): string {
  return at === null || at === undefined ? '–' : exact.format(at);
}

/** A time for a `datetime-local` field: `2026-11-22T14:00`, in the user's time zone. */
export function localMinute(at: number): string {
  return new Date(at - new Date(at).getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
}

/** `Nov 22`. */
export function dayOf(at: number): string {
  return day.format(at);
}

/** `Nov 22, 2026`. */
export function fullDayOf(at: number): string {
  return fullDay.format(at);
}

/** `14:00`. */
export function hourOf(at: number): string {
  return hour.format(at);
}

/** A relative time: `3 minutes ago`, `in 2 days`. */
export function fromNow(at: number | null | undefined, now = Date.now()): string {
  if (at === null || at === undefined) return 'never';
  const seconds = (at - now) / 1000;
  const size = Math.abs(seconds);
  if (size < 45) return seconds <= 0 ? 'just now' : 'in a moment';
  // Rounded up, an hour's last half minute is the next hour; but 24 hours ago need not be yesterday.
  if (size < 59.5 * 60) return relative.format(Math.round(seconds / 60), 'minute');
  if (size < 86_400) return relative.format(Math.sign(seconds) * Math.min(23, Math.round(size / 3600)), 'hour');
  if (size < 30 * 86_400) return relative.format(Math.round(seconds / 86_400), 'day');
  return (
    day.format(at) +
    (new Date(at).getFullYear() === new Date(now).getFullYear() ? '' : `, ${new Date(at).getFullYear()}`)
  );
}

/** A span in ms: `85 ms`, `1.24 s`, `3 min 20 s`, `2 h 5 min`. */
export function duration(ms: number | null | undefined): string {
  if (ms === null || ms === undefined) return '–';
  // Each bound is where rounding leads to the next form.
  if (ms < 999.5) return `${Math.round(ms)} ms`;
  if (ms < 9995) return `${(ms / 1000).toFixed(2)} s`;
  if (ms < 59_950) return `${(ms / 1000).toFixed(1)} s`;
  const seconds = Math.round(ms / 1000);
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes} min ${seconds % 60} s`;
  return `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}
