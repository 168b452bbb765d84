import { Autocomplete, Group, Input, Stack, Text } from '@mantine/core';
import { IconMovie } from '@tabler/icons-react';
import { DownloadButton } from '../../../components/download-button.tsx';
import { ImageInputs } from '../image-inputs.tsx';
import type { Playground } from '../make-playground.ts';
import { useStore } from '../state-store.ts';
import { type MadeVideo, makeVideo } from './media-work.ts';
import { SizeField, WordsField } from './task-fields.tsx';
import { given, TaskForm } from './task-form.tsx';
import { TaskLayout } from './task-layout.tsx';

/** Generates videos from text, and optionally a first picture. */
export function VideoTab({ session }: { session: Playground['videos'] }) {
  return (
    <TaskLayout
      session={session}
      form={<VideoForm session={session} />}
      icon={IconMovie}
      emptyTitle="No videos yet"
      emptyText="Describe one. It takes a while; you may look at other tabs and pages meanwhile."
    >
      {(video) => <VideoView video={video} />}
    </TaskLayout>
  );
}

function VideoForm({ session }: { session: Playground['videos'] }) {
  const { form } = useStore(session.store);
  const { model, prompt, size, seconds, image } = form;
  const reference = image === '' ? undefined : { image_url: image };
  const body = given({ model, prompt, size, seconds, input_reference: reference });
  return (
    <TaskForm
      session={session}
      path="/v1/videos"
      action="Make video"
      isFilled={prompt.trim() !== ''}
      onSend={() => void session.run(prompt, model, makeVideo(body))}
      code={() => ({ path: '/v1/videos', body })}
    >
      <WordsField
        label="Prompt"
        placeholder="A paper boat on a stream, the camera follows it"
        value={prompt}
        onChange={(next) => session.setForm({ prompt: next })}
      />
      <SizeField
        sizes={['1280x720', '720x1280', '1792x1024', '1024x1792']}
        value={size}
        onChange={(next) => session.setForm({ size: next })}
      />
      <Autocomplete
        label="Seconds"
        description="Empty: as is usual for the model"
        data={['4', '5', '8', '10', '12']}
        value={seconds}
        onChange={(next) => session.setForm({ seconds: next })}
      />
      <Input.Wrapper label="First picture" labelElement="div">
        <ImageInputs
          images={image === '' ? [] : [image]}
          onChange={([next = '']) => session.setForm({ image: next })}
          max={1}
        />
      </Input.Wrapper>
    </TaskForm>
  );
}

function VideoView({ video }: { video: MadeVideo }) {
  return (
    <Stack gap="xs" align="flex-start">
      {/* biome-ignore lint/a11y/useMediaCaption: a newly generated video has no captions. */}
      <video
        src={video.url}
        controls
        playsInline
        preload="metadata"
        aria-label="The video"
        style={{ maxWidth: '100%', maxHeight: 480, borderRadius: 6 }}
      />
      <Group gap="sm">
        <DownloadButton href={video.url} name={`${video.id}.mp4`} />
        <Text size="sm" c="dimmed">
          {video.size}, {video.seconds} s
        </Text>
      </Group>
    </Stack>
  );
}
