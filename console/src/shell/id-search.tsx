import { ActionIcon, Button, Group, Kbd, Stack, Text, TextInput } from '@mantine/core';
import { useDisclosure, useHotkeys } from '@mantine/hooks';
import { IconSearch } from '@tabler/icons-react';
import { useNavigate } from '@tanstack/react-router';
import { type FormEvent, useState } from 'react';
import { Dialog } from '../components/dialog.tsx';

const title = 'Find a request';

/** A button, and Ctrl+K, for a dialog that finds a request by any of its ids. */
export function IdSearch() {
  const [isOpen, { open, close }] = useDisclosure(false);
  // In text fields, too: the user may have the id at hand there.
  useHotkeys([['mod+K', open]], []);
  return (
    <>
      <Button
        variant="default"
        size="sm"
        fw={400}
        c="dimmed"
        leftSection={<IconSearch size={16} aria-hidden />}
        rightSection={<Kbd size="xs">Ctrl K</Kbd>}
        onClick={open}
        visibleFrom="sm"
      >
        {title}
      </Button>
      <ActionIcon variant="default" size={34} aria-label={title} onClick={open} hiddenFrom="sm">
        <IconSearch size={18} aria-hidden />
      </ActionIcon>
      {isOpen && <SearchDialog onClose={close} />}
    </>
  );
}

function SearchDialog({ onClose }: { onClose: () => void }) {
  const [text, setText] = useState('');
  const navigate = useNavigate();
  // Cleans text copied from logs and JSON.
  const id = text.replace(/[\s"'`,]/g, '');
  const search = (event: FormEvent): void => {
    event.preventDefault();
    if (id === '') return;
    onClose();
    void navigate({ to: '/requests/$requestId', params: { requestId: id } });
  };
  return (
    <Dialog onClose={onClose} title={title} size="lg">
      <form onSubmit={search}>
        <Stack gap="sm">
          <TextInput
            label="Id"
            placeholder="req_…, job_…, resp_…, video_…"
            description="The x-request-id of an answer, or the id of a job, response, video or chat completion"
            value={text}
            onChange={(event) => setText(event.currentTarget.value)}
            data-autofocus
            autoComplete="off"
            spellCheck={false}
          />
          <Text size="xs" c="dimmed">
            Refused requests can be found for 7 days.
          </Text>
          <Group justify="flex-end">
            <Button type="submit" disabled={id === ''}>
              Find
            </Button>
          </Group>
        </Stack>
      </form>
    </Dialog>
  );
}
