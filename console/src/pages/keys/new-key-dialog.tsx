import { Alert, Button, Code, Group, Stack } from '@mantine/core';
import { IconAlertTriangle } from '@tabler/icons-react';
import type { NewApiKey } from '../../api/keys.ts';
import { CopyButton } from '../../components/copy-button.tsx';
import { Dialog } from '../../components/dialog.tsx';
import { useShownOnceInDialog } from '../../shell/shown-once.ts';

/** Shows a key's text for the only time. A click beside the dialog does not close it: the text would be lost. */
export function NewKeyDialog({ created, onClose }: { created: NewApiKey; onClose: () => void }) {
  useShownOnceInDialog();
  return (
    <Dialog
      onClose={onClose}
      title="Your new API key"
      closeOnClickOutside={false}
      closeOnEscape={false}
      withCloseButton={false}
      size="lg"
    >
      <Stack gap="md">
        <Alert color="yellow" icon={<IconAlertTriangle aria-hidden />} title="Copy it now">
          This is the only time that the key is shown. The gateway keeps no copy that could be read: if it is lost,
          rotate the key or make another one.
        </Alert>
        <Code block fz="sm" data-testid="new-key" style={{ whiteSpace: 'pre-wrap', overflowWrap: 'anywhere' }}>
          {created.key}
        </Code>
        <Group justify="space-between">
          <CopyButton value={created.key} label="Copy the key" />
          <Button onClick={onClose}>I have copied it</Button>
        </Group>
      </Stack>
    </Dialog>
  );
}
