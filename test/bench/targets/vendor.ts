import type { TargetKind } from './target.ts';

/** The minimal vendor itself, with nothing in between. */
export const vendor: TargetKind = {
  name: 'vendor',
  start: async (options) => ({
    name: 'vendor',
    url: `${options.vendorOrigin}/v1/chat/completions`,
    headers: {},
    processes: [{ name: 'vendor', pid: options.vendor.pid }],
    close: async () => {},
  }),
};
