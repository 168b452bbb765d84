import { Box, Button, Grid, Group, Stack } from '@mantine/core';
import { IconMessage } from '@tabler/icons-react';
import { Card } from '../../../components/card.tsx';
import { EmptyState } from '../../../components/empty-state.tsx';
import { useStore } from '../state-store.ts';
import { ChatComposer } from './chat-composer.tsx';
import type { ChatSession } from './chat-session.ts';
import { ChatSettingsForm } from './chat-settings-form.tsx';
import classes from './chat-tab.module.css';
import { ChatTurnView } from './chat-turn-view.tsx';
import { useFollowedEnd } from './use-followed-end.ts';

/** A talk with a chat model, its settings beside it. */
export function ChatTab({ chat }: { chat: ChatSession }) {
  const { settings, turns } = useStore(chat.store);
  const { list, end } = useFollowedEnd(turns.length);
  const last = turns.at(-1);
  const isEnded = last?.role === 'assistant' && last.state !== 'running';
  return (
    <Grid gap="md" align="flex-start">
      {/* On a phone the conversation comes first, and its settings below. */}
      <Grid.Col span={{ base: 12, md: 4 }} order={{ base: 2, md: 1 }}>
        <Card title="Settings">
          <ChatSettingsForm
            settings={settings}
            change={(change) => chat.store.set({ settings: { ...chat.store.get().settings, ...change } })}
          />
        </Card>
      </Grid.Col>
      <Grid.Col span={{ base: 12, md: 8 }} order={{ base: 1, md: 2 }}>
        <Card
          title="Chat"
          actions={
            <Group gap="xs">
              {isEnded && (
                <Button size="xs" variant="default" onClick={() => chat.retry()}>
                  Answer again
                </Button>
              )}
              {isEnded && (
                <Button size="xs" variant="default" onClick={() => chat.clear()}>
                  New chat
                </Button>
              )}
            </Group>
          }
        >
          <Stack gap="sm" ref={list} className={classes.turns}>
            {turns.length === 0 && (
              <EmptyState title="Nothing said yet" icon={IconMessage}>
                Write a message below. It works and costs exactly like a request with your API key.
              </EmptyState>
            )}
            {turns.map((turn, index) => (
              // Turns are only added and removed at the end, so the index identifies them.
              // biome-ignore lint/suspicious/noArrayIndexKey: see above
              <ChatTurnView key={index} turn={turn} />
            ))}
          </Stack>
          <Box ref={end} className={classes.end} h={12} />
          <Box className={classes.composer}>
            <ChatComposer chat={chat} />
          </Box>
        </Card>
      </Grid.Col>
    </Grid>
  );
}
