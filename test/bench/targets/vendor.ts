import type { TargetKind } from './target.ts';

/** The minimal vendor itself, with nothing in between. */
export const vendor: TargetKind = {
  name: 'vendor',
  description: 'the minimal vendor alone',
  start: async (options) => ({
    name: 'vendor',
    origin: options.vendorOrigin,
    headers: {},
    processes: [{ name: 'vendor', pid: options.vendor.pid }],
    close: async () => {},
  }),
};
