import { Button } from '@mantine/core';
import { IconDownload } from '@tabler/icons-react';

/**
 * A link that looks like a button and downloads `href`.
 * @param name of the file; left out: the server names it
 */
export function DownloadButton({
  href,
  name = '',
  label = 'Download',
}: {
  href: string;
  name?: string;
  label?: string;
}) {
  return (
    <Button
      component="a"
      href={href}
      download={name}
      variant="default"
      size="xs"
      leftSection={<IconDownload size={16} aria-hidden />}
    >
      {label}
    </Button>
  );
}
