import type { Middleware } from 'koa';
import type { Capability } from '../../../shared/capabilities/capability.ts';
import { ApiError } from '../../../shared/errors.ts';
import type { CapabilityQueue, QueuedJob } from '../../../shared/queue/queue.ts';
import type { ShardedQueue } from '../../../shared/queue/sharded-queue.ts';
import { withTimeout } from '../../../shared/runtime/with-timeout.ts';
import type { State } from '../../state.ts';

/** Path of the board. */
export const boardPath = '/console/queues';

/** Timeout for a response of the board, which reads Redis. */
const boardMs = 5000;
/** Jobs per page: each is read with its request, of up to 64 KiB. */
const maxJobs = 100;

/**
 * `GET /console/queues`: bull-board over all queues, for signed-in operators. It shows jobs without their content and
 * changes nothing, because a job also has a state and a hold outside of the queue. It is loaded on first use.
 */
export function queueBoard({ queues }: { readonly queues: ReadonlyMap<Capability, ShardedQueue> }): Middleware<State> {
  let board: Promise<Middleware> | undefined;
  return async (ctx, next) => {
    ctx.state.endpoint = 'queue-board';
    if (ctx.state.session.role !== 'operator') throw new ApiError('permission_denied', 'Only operators may do this.');
    if (Number(ctx.query.jobsPerPage) > maxJobs) ctx.query = { ...ctx.query, jobsPerPage: String(maxJobs) };
    board ??= openBoard([...queues.values()].flatMap(({ all }) => all));
    const shown = (await board)(ctx, next).then(() => true);
    if (!(await withTimeout(shown, boardMs))) {
      throw new ApiError('service_unavailable', 'The queues cannot be read for now. Try again later.', {
        reason: 'queue_unavailable',
        retryAfterMs: 2000,
      });
    }
    if (typeof ctx.body === 'string' && ctx.response.is('html')) ctx.body = withinConsole(ctx.body);
  };
}

/**
 * Leads whoever opens the board in a browser and may not see it to the console's page of the queues, which asks to sign in, or
 * says that it is for operators. Programs, and the board's own script, get the error.
 */
export const leadToConsole: Middleware<State> = async (ctx, next) => {
  try {
    await next();
  } catch (error) {
    const isRefused = error instanceof ApiError && /^(invalid_api_key|permission_denied)$/.test(error.code);
    if (!isRefused || ctx.headers.accept?.includes('text/html') !== true) throw error;
    ctx.redirect('/console/operator/workers');
  }
};

/** A back link in a corner: the board's own header is fixed, and has no room on a phone. */
const wayBack =
  '<nav aria-label="Console" style="position:fixed;right:1rem;bottom:1rem;z-index:50">' +
  '<a href="/console/operator/workers" style="display:block;padding:0.5rem 1rem;border-radius:8px;background:#0b6e8f;' +
  'color:#ffffff;font:600 0.875rem/1.5 system-ui,sans-serif">← Back to the Sluice console</a></nav>';

/** Adds a back link and button names to the board's page, and removes what it would load from other sites (fonts). */
function withinConsole(page: string): string {
  return page
    .replace(/<link\b[^>]*\shref="(https?:)?\/\/[^>]*>/g, '')
    .replace('<div id="root">', `${wayBack}<div id="root">`)
    .replace('</body>', '<script defer src="/console/queue-board.js"></script></body>');
}

const fonts = {
  'font-sans': 'system-ui, -apple-system, "Segoe UI", Roboto, sans-serif',
  'font-mono': 'ui-monospace, SFMono-Regular, Menlo, Consolas, monospace',
};

/** The board's theme: that of the console, without links to its maker's pages. */
const looks = {
  boardTitle: 'Sluice queues',
  boardLogo: { path: '/console/favicon.svg', width: 28, height: 28 },
  favIcon: { default: '/console/favicon.svg', alternative: '/favicon.ico' },
  miscLinks: [{ text: 'Back to the console', url: '/console/operator/workers' }],
  hideDocsLink: true,
  // It knows BullMQ's own workers only, and would warn of queues without any. The console's page has ours.
  showWorkers: false,
  theme: {
    // Its own muted colour has too little contrast.
    light: {
      ...fonts,
      primary: '#0b6e8f',
      ring: '#0b6e8f',
      'muted-foreground': '#4a5561',
      'sidebar-foreground': '#1c2530',
      'sidebar-state-selected-foreground': '#085a76',
      'state-selected-foreground': '#085a76',
    },
    dark: { ...fonts, primary: '#73c2dd', ring: '#73c2dd', 'muted-foreground': '#a3b0bd' },
  },
};

async function openBoard(queues: readonly CapabilityQueue[]): Promise<Middleware> {
  const [{ createBullBoard }, { BullMQAdapter }, { KoaAdapter }] = await Promise.all([
    import('@bull-board/api'),
    import('@bull-board/api/bullMQAdapter'),
    import('@bull-board/koa'),
  ]);
  const shown = await Promise.all(queues.map(async (queue) => ({ shard: queue.shard, bull: await queue.bull() })));
  const server = new KoaAdapter().setBasePath(boardPath);
  createBullBoard({
    queues: shown.map(({ bull, shard }) => {
      // Their names differ by it: all shards of a capability have its name.
      const prefix = shard === 0 ? '' : `shard-${shard}-`;
      const queue = new BullMQAdapter(bull, { readOnlyMode: true, prefix });
      queue.setFormatter('data', shownData);
      queue.setFormatter('name', ({ data }: { readonly data?: Partial<QueuedJob> }) => data?.model ?? 'job');
      return queue;
    }),
    serverAdapter: server,
    options: { uiConfig: looks },
  });
  return server.registerPlugin();
}

/** The identity of a queued job. Operators may not read its request. */
function shownData(data: Partial<QueuedJob> | undefined): Record<string, unknown> {
  const { id, model, endpoint, account, apiKeyId } = data ?? {};
  return { id, model, endpoint, account, key: apiKeyId };
}
