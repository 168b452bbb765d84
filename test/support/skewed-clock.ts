/**
 * Settings for a process whose clock is ahead of everybody else's by so many ms (or late, where it is negative): all that
 * tells the time of day in it does.
 */
export function skewedClock(aheadMs: number): Record<string, string> {
  const source = `const Real = Date;
    globalThis.Date = class Date extends Real {
      constructor(...args) { if (args.length === 0) super(Real.now() + ${aheadMs}); else super(...args); }
      static now() { return Real.now() + ${aheadMs}; }
    };`;
  return { NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(source)}` };
}
