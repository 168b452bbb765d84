import { Alert, Badge, Group, Image, Loader, Progress, ScrollArea, Stack, Text } from '@mantine/core';
import { IconAlertCircle } from '@tabler/icons-react';
import { useEffect, useState } from 'react';
import type { Job } from '../../api/jobs.ts';
import { Dialog } from '../../components/dialog.tsx';
import { FormError } from '../../components/error-panel.tsx';
import { type WatchedEvent, watchJob } from './watch-job.ts';

interface Watched extends WatchedEvent {
  readonly state: 'running' | 'ended' | 'lost';
  readonly lostBy?: unknown;
}

/** Shows a job's answer as it arrives, from its beginning. */
export function WatchDialog({ job, onClose }: { job: Job; onClose: () => void }) {
  return (
    <Dialog onClose={onClose} title={`Watching ${job.model}`} size="lg">
      <WatchView key={job.id} id={job.id} />
    </Dialog>
  );
}

function WatchView({ id }: { id: string }) {
  const { text, progress, picture, error, state, lostBy } = useWatched(id);
  return (
    <Stack gap="sm">
      <Group gap="xs" role="status">
        {state === 'running' ? (
          <Loader size="xs" />
        ) : (
          <Badge color="gray">{state === 'ended' ? 'ended' : 'lost'}</Badge>
        )}
        <Text size="xs" c="dimmed" className="said">
          {id}
        </Text>
      </Group>
      {progress !== undefined && <Progress value={progress} aria-label="How far the work is" size="lg" />}
      {picture !== undefined && <Image src={picture} alt="As far as it is" radius="sm" mah={420} fit="contain" />}
      {text !== undefined && text !== '' && (
        <ScrollArea.Autosize mah="50vh" viewportProps={{ tabIndex: 0, role: 'region', 'aria-label': 'The answer' }}>
          <Text className="said" data-testid="watched">
            {text}
          </Text>
        </ScrollArea.Autosize>
      )}
      {error !== undefined && (
        <Alert color="red" variant="light" icon={<IconAlertCircle aria-hidden />} title="The job failed" role="alert">
          {error}
        </Alert>
      )}
      <FormError error={lostBy} />
    </Stack>
  );
}

function useWatched(id: string): Watched {
  const [watched, setWatched] = useState<Watched>({ state: 'running' });
  useEffect(() => {
    const controller = new AbortController();
    const onEvent = (event: WatchedEvent): void =>
      setWatched((before) => ({ ...before, ...event, text: (before.text ?? '') + (event.text ?? '') }));
    setWatched({ state: 'running' });
    watchJob(id, onEvent, controller.signal).then(
      () => setWatched((before) => ({ ...before, state: 'ended' })),
      (lostBy: unknown) => {
        if (!controller.signal.aborted) setWatched((before) => ({ ...before, state: 'lost', lostBy }));
      },
    );
    return () => controller.abort();
  }, [id]);
  return watched;
}
