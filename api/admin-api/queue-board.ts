import type { Middleware } from 'koa';
import { ApiError } from '../../shared/errors.ts';
import type { CapabilityQueue, QueuedJob } from '../../shared/queue.ts';
import type { Services } from '../services.ts';
import type { State } from '../state.ts';

/** Where the board is. */
export const boardPath = '/console/queues';

/** Jobs on one page: each is read with its request, which may be 64 KiB long. */
const mostJobs = 100;

/**
 * `GET /console/queues`: bull-board over all queues, for operators who are signed in. It shows which jobs there are and
 * nothing of what they say, and it changes nothing: a job that it would remove or repeat has a state and a hold beside the
 * queue. It is loaded when somebody first looks.
 */
export function queueBoard({ queues }: Services): Middleware<State> {
  let board: Promise<Middleware> | undefined;
  return async (ctx, next) => {
    ctx.state.endpoint = 'queue-board';
    if (ctx.state.session.role !== 'operator') throw new ApiError('permission_denied', 'Only operators may do this.');
    if (Number(ctx.query.jobsPerPage) > mostJobs) ctx.query = { ...ctx.query, jobsPerPage: String(mostJobs) };
    board ??= openBoard([...queues.values()]);
    await (await board)(ctx, next);
  };
}

async function openBoard(queues: readonly CapabilityQueue[]): Promise<Middleware> {
  const [{ createBullBoard }, { BullMQAdapter }, { KoaAdapter }] = await Promise.all([
    import('@bull-board/api'),
    import('@bull-board/api/bullMQAdapter'),
    import('@bull-board/koa'),
  ]);
  const server = new KoaAdapter().setBasePath(boardPath);
  createBullBoard({
    queues: queues.map(({ bull }) => {
      const queue = new BullMQAdapter(bull, { readOnlyMode: true });
      queue.setFormatter('data', shownData);
      queue.setFormatter('name', ({ data }: { readonly data?: Partial<QueuedJob> }) => data?.model ?? 'job');
      return queue;
    }),
    serverAdapter: server,
    options: { uiConfig: { boardTitle: 'Queues' } },
  });
  return server.registerPlugin();
}

/** Of what is queued: who the job is. Its request is not operators' to read. */
function shownData(data: Partial<QueuedJob> | undefined): Record<string, unknown> {
  const { id, model, endpoint, account, apiKeyId } = data ?? {};
  return { id, model, endpoint, account, key: apiKeyId };
}
