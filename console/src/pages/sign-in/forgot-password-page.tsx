import { Alert, Button, Stack, Text, TextInput } from '@mantine/core';
import { useMutation, useQuery } from '@tanstack/react-query';
import { requestPasswordReset } from '../../api/auth.ts';
import { settingsQuery } from '../../api/settings.ts';
import { FormError } from '../../components/error-panel.tsx';
import { readForm } from '../../components/read-form.ts';
import { TextLink } from '../../components/text-link.tsx';
import { OutsideLayout } from '../../shell/outside-layout.tsx';

/** Requests a link for setting a new password. The response does not reveal whether the account exists. */
export function ForgotPasswordPage() {
  const ask = useMutation({ mutationFn: requestPasswordReset });
  const settings = useQuery(settingsQuery);
  if (settings.data?.mail === false) {
    return (
      <OutsideLayout title="Forgot your password?" footer={<TextLink to="/sign-in">Back to sign in</TextLink>}>
        <Text size="sm">
          This gateway sends no mail. Ask its operator, who can make a link for you to choose a new password.
        </Text>
      </OutsideLayout>
    );
  }
  return (
    <OutsideLayout
      title="Forgot your password?"
      description="Give your email address, and get a mail with a link to choose a new password."
      footer={<TextLink to="/sign-in">Back to sign in</TextLink>}
    >
      {ask.isSuccess ? (
        <Alert color="green" role="status" title="Look into your mail">
          If there is an account with this address, a link is on its way to it. Operators are sent none: another
          operator makes one in the console's list of users.
        </Alert>
      ) : (
        <form onSubmit={(event) => ask.mutate(readForm(event).email ?? '')}>
          <Stack gap="sm">
            <TextInput label="Email" name="email" type="email" autoComplete="username" required autoFocus />
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
