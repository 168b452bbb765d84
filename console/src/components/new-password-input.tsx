import { PasswordInput } from '@mantine/core';

/** A field for a password that is being chosen. The length is what the gateway asks for. */
export function NewPasswordInput({ label, name }: { label: string; name: string }) {
  return (
    <PasswordInput
      label={label}
      name={name}
      description="At least 8 characters."
      autoComplete="new-password"
      minLength={8}
      maxLength={128}
      required
      visibilityToggleButtonProps={{ 'aria-label': 'Show the password' }}
    />
  );
}
