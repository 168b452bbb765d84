import { PasswordField } from './password-field.tsx';

/** A field for a new password. The length matches the gateway's rule. */
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
