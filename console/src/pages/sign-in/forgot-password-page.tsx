import { Alert, Button, Stack, TextInput } from '@mantine/core';
import { useMutation } from '@tanstack/react-query';
import { requestPasswordReset } from '../../api/auth.ts';
import { FormError } from '../../components/error-panel.tsx';
import { readForm } from '../../components/read-form.ts';
import { TextLink } from '../../components/text-link.tsx';
import { OutsideLayout } from '../../shell/outside-layout.tsx';

/** Asks for a link that sets a new password. The answer does not tell whether there is such an account. */
export function ForgotPasswordPage() {
  const ask = useMutation({ mutationFn: requestPasswordReset });
  return (
    <OutsideLayout
      title="Forgot your password?"
      description="Give your e-mail address, and a link to set a new password is made."
      footer={<TextLink to="/sign-in">Back to sign in</TextLink>}
    >
      {ask.isSuccess ? (
        <Alert color="green" role="status" title="Asked for">
          If there is an account with this address, there is a link now. This gateway sends no mail by itself: its
          operator has the link and can hand it to you.
        </Alert>
      ) : (
        <form onSubmit={(event) => ask.mutate(readForm(event).email ?? '')}>
          <Stack gap="sm">
            <TextInput label="E-mail" name="email" type="email" autoComplete="username" required autoFocus />
            <FormError error={ask.error} />
            <Button type="submit" loading={ask.isPending} fullWidth>
              Ask for a link
            </Button>
          </Stack>
        </form>
      )}
    </OutsideLayout>
  );
}
