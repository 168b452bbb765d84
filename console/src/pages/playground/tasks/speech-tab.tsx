import { Autocomplete, Group, Select, Stack, Text } from '@mantine/core';
import { IconVolume } from '@tabler/icons-react';
import { DownloadButton } from '../../../components/download-button.tsx';
import { NumberField } from '../../../components/number-field.tsx';
import { bytes } from '../../../format/number.ts';
import type { Playground } from '../make-playground.ts';
import { useStore } from '../state-store.ts';
import { type MadeSpeech, makeSpeech } from './media-work.ts';
import { HintField, WordsField } from './task-fields.tsx';
import { given, TaskForm } from './task-form.tsx';
import { TaskLayout } from './task-layout.tsx';

const voices = ['alloy', 'ash', 'ballad', 'coral', 'echo', 'fable', 'onyx', 'nova', 'sage', 'shimmer', 'verse'];
const formats = ['mp3', 'wav', 'flac', 'opus', 'aac', 'pcm'];

/** Synthesizes speech from a text. */
export function SpeechTab({ session }: { session: Playground['speech'] }) {
  return (
    <TaskLayout
      session={session}
      form={<SpeechForm session={session} />}
      icon={IconVolume}
      emptyTitle="Nothing spoken yet"
      emptyText="Write a text and choose a voice; what is spoken can be played and downloaded here."
    >
      {(speech) => <SpeechView speech={speech} />}
    </TaskLayout>
  );
}

function SpeechForm({ session }: { session: Playground['speech'] }) {
  const { form } = useStore(session.store);
  const { model, input, voice, format, speed, instructions } = form;
  const body = given({ model, input, voice, response_format: format, speed: speed === 1 ? '' : speed, instructions });
  return (
    <TaskForm
      session={session}
      path="/v1/audio/speech"
      action="Speak"
      isFilled={input.trim() !== '' && voice !== ''}
      onSend={() => void session.run(input, model, makeSpeech(body, format))}
      code={() => ({ path: '/v1/audio/speech', body, saveAs: `speech.${format}` })}
    >
      <WordsField
        label="Text"
        placeholder="The quick brown fox jumps over the lazy dog."
        maxLength={4096}
        value={input}
        onChange={(next) => session.setForm({ input: next })}
      />
      <Autocomplete
        label="Voice"
        description="One of these, or any that the vendor knows"
        data={voices}
        value={voice}
        onChange={(next) => session.setForm({ voice: next })}
      />
      <Select
        label="Format"
        allowDeselect={false}
        data={formats}
        value={format}
        onChange={(next) => session.setForm({ format: next ?? 'mp3' })}
      />
      <NumberField
        label="Speed"
        min={0.25}
        max={4}
        step={0.25}
        value={speed}
        onChange={(next) => session.setForm({ speed: next === '' ? 1 : next })}
      />
      <HintField
        label="Instructions"
        description="How it is to be spoken, where the model can be told"
        value={instructions}
        onChange={(next) => session.setForm({ instructions: next })}
      />
    </TaskForm>
  );
}

function SpeechView({ speech }: { speech: MadeSpeech }) {
  const { url, format, bytes: size } = speech;
  return (
    <Stack gap="xs">
      {format === 'pcm' ? (
        <Text size="sm" c="dimmed">
          Raw samples have no header: browsers cannot play them. Download them, or choose WAV.
        </Text>
      ) : (
        // biome-ignore lint/a11y/useMediaCaption: its text is shown above it.
        <audio src={url} controls aria-label="The spoken text" style={{ width: '100%' }} />
      )}
      <Group gap="sm">
        <DownloadButton href={url} name={`speech.${format}`} />
        <Text size="sm" c="dimmed">
          {format}, {bytes(size)}
        </Text>
      </Group>
    </Stack>
  );
}
