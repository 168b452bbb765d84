import { PasswordInput, type PasswordInputProps } from '@mantine/core';
import { useState } from 'react';

/** A password field with a button that reveals it, which is also reachable by keyboard. */
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
