import { PasswordInput, type PasswordInputProps } from '@mantine/core';
import { useState } from 'react';

/** A field for a password, with a button that shows it; the keyboard reaches that, too. */
export function PasswordField(
  props: Omit<PasswordInputProps, 'label' | 'required' | 'visible' | 'visibilityToggleButtonProps'> & { label: string },
) {
  const [isShown, setShown] = useState(false);
  return (
    <PasswordInput
      required
      visible={isShown}
      onVisibilityChange={setShown}
      visibilityToggleButtonProps={{
        'aria-label': `${isShown ? 'Hide' : 'Show'} the ${props.label.toLowerCase()}`,
        tabIndex: 0,
      }}
      {...props}
    />
  );
}
