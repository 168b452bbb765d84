import { ActionIcon, Box, Button, CloseButton, FileButton, Group, Image, Popover, TextInput } from '@mantine/core';
import { IconLink, IconPhoto } from '@tabler/icons-react';
import { type FormEvent, useRef, useState } from 'react';
import { FormError } from '../../components/error-panel.tsx';
import { readDataUrl } from './read-data-url.ts';

/** Maximum size of one file: a request is limited to some megabytes, and base64 makes it a third longer. */
const largestFile = 10 * 1024 * 1024;

interface ImageInputsProps {
  /** Data URLs and links. */
  readonly images: readonly string[];
  readonly onChange: (images: readonly string[]) => void;
  readonly max?: number;
}

/** Pictures for a request: from files and by their addresses. */
export function ImageInputs({ images, onChange, max = 8 }: ImageInputsProps) {
  const [error, setError] = useState<Error | null>(null);
  const forget = useRef<() => void>(null);
  const isFull = images.length >= max;
  const addFiles = async (files: readonly File[]): Promise<void> => {
    // A browser says nothing when the file that its field has already is chosen again.
    forget.current?.();
    const large = files.find(({ size }) => size > largestFile);
    setError(large === undefined ? null : new Error(`${large.name} is over 10 MB.`));
    if (large !== undefined) return;
    onChange([...images, ...(await Promise.all(files.map(readDataUrl)))].slice(0, max));
  };
  return (
    <Box>
      <Group gap="xs">
        <FileButton
          resetRef={forget}
          multiple
          accept="image/*"
          onChange={(files) => void addFiles(files).catch(setError)}
        >
          {(props) => (
            <Button
              {...props}
              variant="default"
              size="xs"
              disabled={isFull}
              leftSection={<IconPhoto size={16} aria-hidden />}
            >
              Add picture
            </Button>
          )}
        </FileButton>
        <LinkInput disabled={isFull} onAdd={(url) => onChange([...images, url])} />
        {images.map((url, index) => (
          <Group key={url} gap={2} wrap="nowrap">
            <Preview url={url} />
            <CloseButton
              size="sm"
              aria-label={`Remove picture ${index + 1}`}
              onClick={() => onChange(images.filter((_, other) => other !== index))}
            />
          </Group>
        ))}
      </Group>
      <FormError error={error} />
    </Box>
  );
}

/** The page loads no pictures of other sites (its policy forbids it): for a link, its host is shown. */
export function Preview({ url }: { url: string }) {
  if (url.startsWith('data:')) return <Image src={url} alt="Picture to send" h={36} w="auto" radius="sm" />;
  return (
    <Box component="span" fz="xs" c="dimmed" maw={200} style={{ overflowWrap: 'anywhere' }}>
      {url}
    </Box>
  );
}

function LinkInput({ disabled, onAdd }: { disabled: boolean; onAdd: (url: string) => void }) {
  const [isOpen, setIsOpen] = useState(false);
  const [url, setUrl] = useState('');
  const isGood = /^https?:\/\//.test(url) && URL.canParse(url);
  const add = (event: FormEvent): void => {
    event.preventDefault();
    if (!isGood) return;
    onAdd(url);
    setUrl('');
    setIsOpen(false);
  };
  return (
    <Popover opened={isOpen} onChange={setIsOpen} withArrow trapFocus>
      <Popover.Target>
        <ActionIcon
          variant="default"
          size={30}
          aria-label="Add picture by its address"
          disabled={disabled}
          onClick={() => setIsOpen(!isOpen)}
        >
          <IconLink size={16} aria-hidden />
        </ActionIcon>
      </Popover.Target>
      <Popover.Dropdown>
        <form onSubmit={add}>
          <Group align="flex-end" gap="xs">
            <TextInput
              label="Address of a picture"
              placeholder="https://"
              value={url}
              onChange={(event) => setUrl(event.currentTarget.value)}
            />
            <Button type="submit" disabled={!isGood}>
              Add
            </Button>
          </Group>
        </form>
      </Popover.Dropdown>
    </Popover>
  );
}
