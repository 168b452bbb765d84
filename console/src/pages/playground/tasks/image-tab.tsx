import { Image, Select, SimpleGrid, Stack } from '@mantine/core';
import { IconPhoto } from '@tabler/icons-react';
import { DownloadButton } from '../../../components/download-button.tsx';
import { NumberField } from '../../../components/number-field.tsx';
import type { Playground } from '../make-playground.ts';
import { useStore } from '../state-store.ts';
import { type MadeImage, makeImages } from './media-work.ts';
import { SizeField, WordsField } from './task-fields.tsx';
import { given, TaskForm } from './task-form.tsx';
import { TaskLayout } from './task-layout.tsx';

const sizes = ['auto', '1024x1024', '1536x1024', '1024x1536', '512x512', '256x256'];

/** Generates pictures from text. */
export function ImageTab({ session }: { session: Playground['images'] }) {
  return (
    <TaskLayout
      session={session}
      form={<ImageForm session={session} />}
      icon={IconPhoto}
      emptyTitle="No pictures yet"
      emptyText="Describe one, and it appears here. Pictures stay until you leave or reload the console: download those you keep."
    >
      {(images) => <Gallery images={images} />}
    </TaskLayout>
  );
}

function ImageForm({ session }: { session: Playground['images'] }) {
  const { form } = useStore(session.store);
  const { model, prompt, size, n, quality } = form;
  const body = { ...given({ model, prompt, size, quality }), n, response_format: 'b64_json' };
  return (
    <TaskForm
      session={session}
      path="/v1/images/generations"
      action="Make pictures"
      isFilled={prompt.trim() !== ''}
      onSend={() => void session.run(prompt, model, makeImages(body))}
      code={() => ({ path: '/v1/images/generations', body })}
    >
      <WordsField
        label="Prompt"
        placeholder="A lighthouse at dusk, in water colours"
        value={prompt}
        onChange={(next) => session.setForm({ prompt: next })}
      />
      <SizeField sizes={sizes} value={size} onChange={(next) => session.setForm({ size: next })} />
      <NumberField
        label="Pictures"
        min={1}
        max={10}
        allowDecimal={false}
        clampBehavior="strict"
        value={n}
        onChange={(next) => session.setForm({ n: next === '' ? 1 : next })}
      />
      <Select
        label="Quality"
        placeholder="usual"
        clearable
        data={['auto', 'low', 'medium', 'high', 'standard', 'hd']}
        value={quality === '' ? null : quality}
        onChange={(next) => session.setForm({ quality: next ?? '' })}
      />
    </TaskForm>
  );
}

function Gallery({ images }: { images: readonly MadeImage[] }) {
  return (
    <SimpleGrid cols={{ base: 1, xs: Math.min(images.length, 2) }}>
      {images.map(({ url, type }, index) => (
        <Stack key={url} gap="xs" align="flex-start">
          <Image src={url} alt={`Picture ${index + 1} of ${images.length}`} radius="sm" mah={420} fit="contain" />
          <DownloadButton href={url} name={`picture-${index + 1}.${type.split('/')[1]}`} />
        </Stack>
      ))}
    </SimpleGrid>
  );
}
