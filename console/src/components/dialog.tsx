import { Modal, type ModalProps } from '@mantine/core';
import { type ReactNode, useEffect, useState } from 'react';

interface DialogProps extends Pick<ModalProps, 'size' | 'closeOnClickOutside' | 'closeOnEscape' | 'withCloseButton'> {
  readonly title: ReactNode;
  readonly onClose: () => void;
  readonly children: ReactNode;
}

/** A dialog over the page, open as long as it is rendered. After it the keyboard goes on at what opened it. */
export function Dialog(props: DialogProps) {
  // While it is rendered: a menu that led here leaves the page in the same moment.
  const [opener] = useState(() => openerOf(document.activeElement));
  useEffect(() => {
    return () => {
      const next = opener?.isConnected === true ? opener : document.getElementById('content');
      next?.focus({ preventScroll: true });
    };
  }, [opener]);
  // Mantine gives the focus back only where a dialog is closed before it is taken off the page, and to no menu's button.
  return <Modal opened returnFocus={false} closeButtonProps={{ 'aria-label': 'Close' }} {...props} />;
}

/** What is focused now; instead of a menu's line its button, which stays. */
function openerOf(focused: Element | null): HTMLElement | null {
  const button = focused?.closest('[role=menu]')?.getAttribute('aria-labelledby') ?? null;
  if (button !== null) return document.getElementById(button);
  return focused instanceof HTMLElement && focused !== document.body ? focused : null;
}
