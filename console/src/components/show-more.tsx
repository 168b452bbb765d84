import { Button, Center } from '@mantine/core';
import { useEffect, useRef } from 'react';

/** The button for more rows, right after the table it belongs to. */
export function ShowMore({ isLoading = false, onClick }: { isLoading?: boolean; onClick: () => void }) {
  const root = useRef<HTMLDivElement>(null);
  const wasUsed = useRef(false);
  useEffect(() => {
    const table = root.current?.previousElementSibling;
    return () => {
      // It is gone with the last rows, and its focus with it: the keyboard goes on at the table.
      const isLost = wasUsed.current && document.activeElement === document.body;
      if (isLost && table instanceof HTMLElement) table.focus({ preventScroll: true });
    };
  }, []);
  const showMore = (): void => {
    wasUsed.current = true;
    onClick();
  };
  return (
    <Center ref={root}>
      <Button variant="default" size="xs" loading={isLoading} onClick={showMore}>
        Show more
      </Button>
    </Center>
  );
}
