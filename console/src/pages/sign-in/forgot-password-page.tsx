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
      description="Give your e-mail address, and the gateway's operator gets a link for you to set a new password."
      footer={<TextLink to="/sign-in">Back to sign in</TextLink>}
    >
      {ask.isSuccess ? (
        <Alert color="green" role="status" title="Now ask the operator for the link">
          If there is an account with this address, a link was made for it. This gateway sends no mail: its operator
          finds the link in the gateway's log, or makes another one in the console's list of users.
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
