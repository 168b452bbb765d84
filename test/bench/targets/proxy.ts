import { join } from 'node:path';
import { endChild, nextMessage, startModule } from '../children.ts';
import type { TargetKind } from './target.ts';

/** The plain Koa and undici proxy without a queue. */
export const proxy: TargetKind = {
  name: 'proxy',
  description: 'Koa and undici, no queue',
  start: async (options) => {
    const child = startModule('proxy', 'koa-proxy.ts', [options.vendorOrigin], join(options.directory, 'proxy.log'));
    const { port } = await nextMessage<{ port: number }>(child, 20_000);
    return {
      name: 'proxy',
      origin: `http://127.0.0.1:${port}`,
      headers: {},
      processes: [child],
      close: () => endChild(child),
    };
  },
};
