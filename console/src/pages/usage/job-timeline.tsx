import { Text, Timeline } from '@mantine/core';
import { IconCheck, IconClock, IconFlag, IconPlayerPlay, IconX } from '@tabler/icons-react';
import type { ReactNode } from 'react';
import type { Job } from '../../api/jobs.ts';
import { duration, exactTime } from '../../format/time.ts';

interface Step {
  readonly title: string;
  readonly at: number | null;
  readonly icon: ReactNode;
  /** Shown while the step has not been reached. */
  readonly pending: string;
}

function steps(job: Job): readonly Step[] {
  const isBad = job.status === 'failed';
  const hasEnded = job.ended_at !== null;
  const never = hasEnded ? 'did not happen' : 'not yet';
  const all: Step[] = [
    { title: 'Queued', at: job.created_at, icon: <IconClock size={14} />, pending: '' },
    { title: 'Started', at: job.began_at, icon: <IconPlayerPlay size={14} />, pending: hasEnded ? never : 'waiting' },
    { title: 'First output', at: job.first_at, icon: <IconFlag size={14} />, pending: never },
    {
      title: job.ended_at === null ? 'End' : (endNames[job.status] ?? 'Ended'),
      at: job.ended_at,
      icon: isBad ? <IconX size={14} /> : <IconCheck size={14} />,
      pending: 'not yet',
    },
  ];
  // A non-streamed answer has no first piece.
  return all.filter(({ title, at }) => title !== 'First output' || at !== null || job.stream);
}

const endNames: Record<string, string> = { completed: 'Completed', failed: 'Failed', cancelled: 'Cancelled' };

/** When a job was queued, started, gave its first output and ended, with the time between each. */
export function JobTimeline({ job }: { job: Job }) {
  const all = steps(job);
  const reached = all.findLastIndex(({ at }) => at !== null);
  return (
    <Timeline active={reached} bulletSize={24} lineWidth={2} color={job.status === 'failed' ? 'red.8' : 'sluice'}>
      {all.map(({ title, at, icon, pending }, index) => {
        const before = all.slice(0, index).findLast((step) => step.at !== null)?.at ?? null;
        return (
          <Timeline.Item key={title} title={title} bullet={icon} {...(at === null ? { c: 'dimmed' } : {})}>
            <Text size="sm" c="dimmed" className="numbers">
              {at === null ? pending : exactTime(at)}
            </Text>
            {at !== null && before !== null && (
              <Text size="xs" c="dimmed" className="numbers">
                {duration(Math.max(0, at - before))} later
              </Text>
            )}
          </Timeline.Item>
        );
      })}
    </Timeline>
  );
}
