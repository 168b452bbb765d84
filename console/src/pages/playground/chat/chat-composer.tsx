import { Button, Group, Stack, Textarea, TextInput } from '@mantine/core';
import { IconPlayerStop, IconSend } from '@tabler/icons-react';
import type { KeyboardEvent } from 'react';
import { RequestCode } from '../code/request-code.tsx';
import { ImageInputs } from '../image-inputs.tsx';
import { useStore } from '../state-store.ts';
import {
  askedTurns,
  chatRequest,
  openCalls,
  schemaMistake,
  type ToolCall,
  type ToolTurn,
  toolsMistake,
} from './chat-request.ts';
import type { ChatSession } from './chat-session.ts';

/** What is said next: a message with pictures, or, where the model called tools, what they came to. */
export function ChatComposer({ chat }: { chat: ChatSession }) {
  const { settings, turns, draft, images } = useStore(chat.store);
  const last = turns.at(-1);
  const isRunning = last?.role === 'assistant' && last.state === 'running';
  const calls = openCalls(turns);
  const isBroken =
    (settings.useTools && toolsMistake(settings.tools) !== undefined) ||
    (settings.useSchema && schemaMistake(settings.schema) !== undefined);
  const canSend = settings.model !== '' && !isBroken && !isRunning;
  if (calls.length > 0 && !isRunning) return <ToolResults calls={calls} chat={chat} canSend={canSend} />;
  const isSaid = draft.trim() !== '' || images.length > 0;
  const said = { role: 'user', text: draft, images } as const;
  const send = (): void => {
    if (!canSend || !isSaid) return;
    chat.store.set({ draft: '', images: [] });
    void chat.send(said);
  };
  return (
    <Stack gap="xs">
      <Textarea
        label="Message"
        placeholder="Ask something. Enter sends, Shift and Enter begin a new line."
        value={draft}
        onChange={(event) => chat.store.set({ draft: event.currentTarget.value })}
        onKeyDown={(event) => sendOnEnter(event, send)}
        autosize
        minRows={2}
        maxRows={6}
      />
      <Group justify="space-between" gap="xs">
        <ImageInputs images={images} onChange={(next) => chat.store.set({ images: next })} />
        <Group gap="xs">
          <RequestCode
            disabled={isBroken || settings.model === '' || (!isSaid && turns.length === 0)}
            request={() => ({
              path: '/v1/chat/completions',
              body: chatRequest(settings, isSaid ? [...turns, said] : askedTurns(turns)),
            })}
          />
          {isRunning ? (
            <Button color="red.9" leftSection={<IconPlayerStop size={18} aria-hidden />} onClick={() => chat.stop()}>
              Stop
            </Button>
          ) : (
            <Button leftSection={<IconSend size={18} aria-hidden />} disabled={!canSend || !isSaid} onClick={send}>
              Send
            </Button>
          )}
        </Group>
      </Group>
    </Stack>
  );
}

function sendOnEnter(event: KeyboardEvent, send: () => void): void {
  // An Enter that confirms a character of an input method does not send.
  if (event.key !== 'Enter' || event.shiftKey || event.nativeEvent.isComposing) return;
  event.preventDefault();
  send();
}

/** A field for the result of each called tool. */
function ToolResults(props: { calls: readonly ToolCall[]; chat: ChatSession; canSend: boolean }) {
  const { calls, chat, canSend } = props;
  const { results } = useStore(chat.store);
  const turns = calls.map(({ id, name }): ToolTurn => ({ role: 'tool', callId: id, name, text: results[id] ?? '' }));
  const send = (): void => {
    chat.store.set({ results: {} });
    void chat.send(...turns);
  };
  return (
    <Stack gap="xs">
      {calls.map(({ id, name }) => (
        <TextInput
          key={id}
          label={`Result of ${name}`}
          description="What the function answers: any text, often JSON. The model goes on with it."
          placeholder='{"temperature": 21}'
          value={results[id] ?? ''}
          onChange={(event) => chat.store.set({ results: { ...results, [id]: event.currentTarget.value } })}
        />
      ))}
      <Group justify="flex-end">
        <Button leftSection={<IconSend size={18} aria-hidden />} disabled={!canSend} onClick={send}>
          Send results
        </Button>
      </Group>
    </Stack>
  );
}
