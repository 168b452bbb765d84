import { PasswordField } from './password-field.tsx';

/** A field for a password that is being chosen. The length is what the gateway asks for. */
export function NewPasswordInput(props: { label: string; name: string; autoFocus?: boolean }) {
  return (
    <PasswordField
      {...props}
      description="At least 8 characters."
      autoComplete="new-password"
      minLength={8}
      maxLength={128}
    />
  );
}
