import { Button, Stack, Textarea } from '@mantine/core';
import { IconCheck, IconCopy } from '@tabler/icons-react';
import { useEffect, useState } from 'react';
import { copyText } from './copy-text.ts';

/** How long it shows that the text is copied. */
const shownMs = 2000;

/** Copies a text to the clipboard, and confirms it; if the browser forbids it, shows the text for copying by hand. */
export function CopyButton({ value, label = 'Copy' }: { value: string; label?: string }) {
  const [state, setState] = useState<'idle' | 'copied' | 'blocked'>('idle');
  useEffect(() => {
    if (state !== 'copied') return;
    const timer = window.setTimeout(() => setState('idle'), shownMs);
    return () => window.clearTimeout(timer);
  }, [state]);
  const copy = async (): Promise<void> => setState((await copyText(value)) ? 'copied' : 'blocked');
  const isCopied = state === 'copied';
  return (
    <Stack gap="xs" align="flex-start">
      <Button
        variant="default"
        size="xs"
        onClick={() => void copy()}
        leftSection={isCopied ? <IconCheck size={16} aria-hidden /> : <IconCopy size={16} aria-hidden />}
      >
        <span aria-live="polite">{isCopied ? 'Copied' : label}</span>
      </Button>
      {state === 'blocked' && (
        <Textarea
          label="Your browser does not allow copying here. Copy the selected text yourself:"
          value={value}
          readOnly
          autosize
          maxRows={6}
          w="100%"
          autoFocus
          onFocus={(event) => event.currentTarget.select()}
        />
      )}
    </Stack>
  );
}
