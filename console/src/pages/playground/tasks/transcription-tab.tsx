import { FileInput, Group, Stack, Table, Text, TextInput } from '@mantine/core';
import { IconFileMusic, IconMicrophone } from '@tabler/icons-react';
import { useQuery } from '@tanstack/react-query';
import { modelsQuery } from '../../../api/models.ts';
import { CopyButton } from '../../../components/copy-button.tsx';
import type { Playground } from '../make-playground.ts';
import { useStore } from '../state-store.ts';
import { type Transcript, transcribe } from './media-work.ts';
import { HintField } from './task-fields.tsx';
import { given, TaskForm } from './task-form.tsx';
import { TaskLayout } from './task-layout.tsx';

/** The largest file that the API accepts. */
const largestFile = 25 * 1024 * 1024;

/** Transcribes a file. */
export function TranscriptionTab({ session }: { session: Playground['transcripts'] }) {
  return (
    <TaskLayout
      session={session}
      form={<TranscriptionForm session={session} />}
      icon={IconMicrophone}
      emptyTitle="Nothing written down yet"
      emptyText="Choose a sound file; its text appears here, with the time of each part where the model tells it."
    >
      {(transcript) => <TranscriptView transcript={transcript} />}
    </TaskLayout>
  );
}

function TranscriptionForm({ session }: { session: Playground['transcripts'] }) {
  const { form } = useStore(session.store);
  const { model, file, language, prompt } = form;
  const isTooLarge = file !== null && file.size > largestFile;
  const models = useQuery(modelsQuery);
  const hasTimes = models.data?.find(({ id }) => id === model)?.timestamps !== false;
  const body = {
    ...given({ model, language, prompt }),
    ...(hasTimes ? { response_format: 'verbose_json', timestamp_granularities: ['segment'] } : {}),
  };
  return (
    <TaskForm
      session={session}
      path="/v1/audio/transcriptions"
      action="Write down"
      isFilled={file !== null && !isTooLarge}
      onSend={() => file !== null && void session.run(file.name, model, transcribe(file, body))}
      code={() => ({
        path: '/v1/audio/transcriptions',
        body,
        file: { field: 'file', name: file?.name ?? 'speech.wav' },
      })}
    >
      <FileInput
        label="Sound file"
        description="mp3, wav, flac, m4a, ogg or webm, up to 25 MB"
        placeholder="Choose a file"
        accept="audio/*,video/mp4,video/webm"
        clearable
        clearButtonProps={{ 'aria-label': 'Remove the file' }}
        leftSection={<IconFileMusic size={18} aria-hidden />}
        value={file}
        onChange={(next) => session.setForm({ file: next })}
        error={isTooLarge && 'It is over 25 MB. Cut it, or save it with more compression.'}
      />
      <TextInput
        label="Language"
        description="Two letters (en, de, …); empty: the model finds out"
        value={language}
        maxLength={8}
        onChange={(event) => session.setForm({ language: event.currentTarget.value.trim() })}
      />
      <HintField
        label="Hint"
        description="Names and words that occur in it"
        value={prompt}
        onChange={(next) => session.setForm({ prompt: next })}
      />
    </TaskForm>
  );
}

function TranscriptView({ transcript }: { transcript: Transcript }) {
  const { text, language, duration, segments = [] } = transcript;
  const facts = [language, duration === undefined ? undefined : `${duration.toFixed(1)} s`];
  return (
    <Stack gap="xs">
      <Text className="said">{text}</Text>
      <Group gap="sm">
        <CopyButton value={text} label="Copy text" />
        <Text size="sm" c="dimmed">
          {facts.filter((fact) => fact !== undefined).join(', ')}
        </Text>
      </Group>
      {segments.length > 0 && <Segments segments={segments} />}
    </Stack>
  );
}

function Segments({ segments }: { segments: NonNullable<Transcript['segments']> }) {
  return (
    <Table aria-label="Parts with their times" fz="sm">
      <Table.Thead>
        <Table.Tr>
          <Table.Th w="9rem">Seconds</Table.Th>
          <Table.Th>Text</Table.Th>
        </Table.Tr>
      </Table.Thead>
      <Table.Tbody>
        {segments.map(({ start, end, text }) => (
          <Table.Tr key={`${start}-${end}`}>
            <Table.Td className="numbers">
              {start.toFixed(2)} – {end.toFixed(2)}
            </Table.Td>
            <Table.Td>{text}</Table.Td>
          </Table.Tr>
        ))}
      </Table.Tbody>
    </Table>
  );
}
