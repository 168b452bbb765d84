import { Autocomplete, Button, Group, NumberInput, Select, Stack, Text, Textarea } from '@mantine/core';
import { IconDownload, IconVolume } from '@tabler/icons-react';
import { bytes } from '../../format/number.ts';
import { type MadeSpeech, makeSpeech } from './media-work.ts';
import { ModelPicker } from './model-picker.tsx';
import type { Playground } from './sessions.ts';
import { useStore } from './state-store.ts';
import { given, TaskForm } from './task-form.tsx';
import { TaskLayout } from './task-layout.tsx';

const voices = ['alloy', 'ash', 'ballad', 'coral', 'echo', 'fable', 'onyx', 'nova', 'sage', 'shimmer', 'verse'];
const formats = ['mp3', 'wav', 'flac', 'opus', 'aac', 'pcm'];

/** Speaks a text. */
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
      action="Speak"
      canSend={model !== '' && input.trim() !== '' && voice !== ''}
      onSend={() => void session.run(input, model, makeSpeech(body, format))}
      code={() => ({ path: '/v1/audio/speech', body, saveAs: `speech.${format}` })}
    >
      <ModelPicker capability="speech" value={model} onChange={(next) => session.setForm({ model: next })} />
      <Textarea
        label="Text"
        placeholder="The quick brown fox jumps over the lazy dog."
        value={input}
        onChange={(event) => session.setForm({ input: event.currentTarget.value })}
        autosize
        minRows={3}
        maxRows={10}
        maxLength={4096}
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
      <NumberInput
        label="Speed"
        min={0.25}
        max={4}
        step={0.25}
        value={speed}
        onChange={(next) => session.setForm({ speed: typeof next === 'number' ? next : 1 })}
      />
      <Textarea
        label="Instructions"
        description="How it is to be spoken, where the model can be told"
        value={instructions}
        onChange={(event) => session.setForm({ instructions: event.currentTarget.value })}
        autosize
        minRows={1}
        maxRows={4}
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
        // biome-ignore lint/a11y/useMediaCaption: its text stands over it.
        <audio src={url} controls aria-label="The spoken text" style={{ width: '100%' }} />
      )}
      <Group gap="sm">
        <Button
          component="a"
          href={url}
          download={`speech.${format}`}
          variant="default"
          size="xs"
          leftSection={<IconDownload size={16} aria-hidden />}
        >
          Download
        </Button>
        <Text size="sm" c="dimmed">
          {format}, {bytes(size)}
        </Text>
      </Group>
    </Stack>
  );
}
