import { Badge, Button, Group, Stack, Text } from '@mantine/core';
import { useMutation, useQuery } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { useState } from 'react';
import { currentSession, endSession, type ListedSession, listSessions, signOutEverywhere } from '../../api/auth.ts';
import { queryClient } from '../../api/query-client.ts';
import { Card } from '../../components/card.tsx';
import { ConfirmDialog } from '../../components/confirm-dialog.tsx';
import { DataTable, TableSkeleton } from '../../components/data-table.tsx';
import { ErrorPanel, FormError } from '../../components/error-panel.tsx';
import { fromNow, time } from '../../format/time.ts';
import { browserName } from './browser-name.ts';

/** The user's sessions; each can be ended, and all at once. */
export function SessionsCard() {
  const navigate = useNavigate();
  const [isAsking, setAsking] = useState(false);
  const sessions = useQuery({ queryKey: ['/auth/list-sessions'], queryFn: ({ signal }) => listSessions(signal) });
  const current = useQuery({ queryKey: ['/auth/get-session'], queryFn: ({ signal }) => currentSession(signal) });
  const end = useMutation({
    mutationFn: endSession,
    onSuccess: () => queryClient.invalidateQueries({ queryKey: ['/auth/list-sessions'] }),
  });
  const isThis = (session: ListedSession): boolean => session.id === current.data?.session.id;
  const rows = [...(sessions.data ?? [])].sort((a, b) => Date.parse(b.updatedAt) - Date.parse(a.updatedAt));
  return (
    <Card
      title="Sessions"
      actions={
        <Button variant="default" size="xs" onClick={() => setAsking(true)}>
          Sign out everywhere
        </Button>
      }
    >
      <Stack gap="sm">
        <FormError error={end.error} />
        {sessions.error !== null && <ErrorPanel error={sessions.error} onRetry={() => void sessions.refetch()} />}
        {sessions.isPending && <TableSkeleton rows={2} />}
        {rows.length > 0 && (
          <DataTable
            label="Sessions"
            rows={rows}
            rowKey={(session) => session.id}
            columns={[
              {
                title: 'Browser',
                isMain: true,
                render: (session) => (
                  <Group gap="xs">
                    <Text size="sm">{browserName(session.userAgent)}</Text>
                    {isThis(session) && <Badge variant="light">this one</Badge>}
                  </Group>
                ),
              },
              { title: 'Address', render: (session) => session.ipAddress || '–' },
              { title: 'Signed in', render: (session) => fromNow(Date.parse(session.createdAt)) },
              { title: 'Ends', render: (session) => time(Date.parse(session.expiresAt)) },
              {
                title: 'Action',
                align: 'right',
                render: (session) =>
                  isThis(session) ? null : (
                    <Button
                      variant="default"
                      size="compact-sm"
                      aria-label={`End the session of ${browserName(session.userAgent)}`}
                      loading={end.isPending && end.variables === session.id}
                      onClick={() => end.mutate(session.id)}
                    >
                      End
                    </Button>
                  ),
              },
            ]}
          />
        )}
      </Stack>
      <ConfirmDialog
        opened={isAsking}
        title="Sign out everywhere?"
        confirmLabel="Sign out everywhere"
        onConfirm={() => signOutEverywhere(() => navigate({ to: '/sign-in' }))}
        onClose={() => setAsking(false)}
      >
        <Text size="sm">All your sessions end, this one too. API keys go on working.</Text>
      </ConfirmDialog>
    </Card>
  );
}
