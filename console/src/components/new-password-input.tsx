import { PasswordField } from './password-field.tsx';

/** A field for a password that is being chosen. The length is what the gateway asks for. */
export function NewPasswordInput(props: { label: string; name: string; autoFocus?: boolean }) {
  return (
    <PasswordField
      {...props}
      description="At least 10 characters, and not one of the common ones."
      autoComplete="new-password"
      minLength={10}
      maxLength={128}
    />
  );
}
