import assert from 'node:assert/strict';
import type { View, ViewedJob } from '../../api/replies/view.ts';
import type { Frame } from '../../shared/jobs/append.ts';

/** What a view shows of the frames, which is the same in each of its forms: streamed, held, and from the frames that are kept. */
export async function shownInEachForm<Shown>(
  view: View,
  job: ViewedJob,
  frames: readonly Frame[],
  fold: (texts: readonly string[]) => Promise<Shown>,
): Promise<Shown> {
  const streamed = await fold(frames.flatMap(view.stream(job)));
  const kept = view.final?.(frames, job) ?? assert.fail('the view says what to keep');
  assert.deepEqual(await fold(kept.flatMap(view.stream(job))), streamed);
  assert.deepEqual(JSON.parse(view.held(job, frames)), streamed);
  return streamed;
}
