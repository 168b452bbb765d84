import { Modal, type ModalProps } from '@mantine/core';
import { type ReactNode, useEffect, useState } from 'react';

interface DialogProps extends Pick<ModalProps, 'size' | 'closeOnClickOutside' | 'closeOnEscape' | 'withCloseButton'> {
  readonly title: ReactNode;
  readonly onClose: () => void;
  /** Whether its action has begun: it stays until that has ended, as what comes of it must be seen. */
  readonly isPending?: boolean;
  readonly children: ReactNode;
}

/** A dialog over the page, open as long as it is rendered. Afterwards the focus returns to the element that opened it. */
export function Dialog({ isPending = false, onClose, ...props }: DialogProps) {
  // Read during rendering: a menu that led here is removed at the same moment.
  const [opener] = useState(() => openerOf(document.activeElement));
  useEffect(() => {
    return () => {
      const next = opener?.isConnected === true ? opener : document.getElementById('content');
      next?.focus({ preventScroll: true });
    };
  }, [opener]);
  // Mantine restores the focus only if a dialog is closed before it is unmounted, and never to a menu's button.
  return (
    <Modal
      opened
      returnFocus={false}
      closeButtonProps={{ 'aria-label': 'Close' }}
      onClose={isPending ? () => {} : onClose}
      {...props}
    />
  );
}

/** The focused element; for a menu item its menu's button, which persists. */
function openerOf(focused: Element | null): HTMLElement | null {
  const button = focused?.closest('[role=menu]')?.getAttribute('aria-labelledby') ?? null;
  if (button !== null) return document.getElementById(button);
  return focused instanceof HTMLElement && focused !== document.body ? focused : null;
}
