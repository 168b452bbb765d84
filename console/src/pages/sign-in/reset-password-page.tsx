import { Alert, Button, Stack } from '@mantine/core';
import { useMutation } from '@tanstack/react-query';
import { getRouteApi, Link } from '@tanstack/react-router';
import { resetPassword } from '../../api/auth.ts';
import { RequestError } from '../../api/request.ts';
import { FormError } from '../../components/error-panel.tsx';
import { NewPasswordInput } from '../../components/new-password-input.tsx';
import { readForm } from '../../components/read-form.ts';
import { TextLink } from '../../components/text-link.tsx';
import { OutsideLayout } from '../../shell/outside-layout.tsx';

const route = getRouteApi('/reset-password');

/** Target of a reset link and an invitation: sets a password with the link's token. */
export function ResetPasswordPage() {
  const { token, invited: isInvited = false } = route.useSearch();
  const reset = useMutation({ mutationFn: resetPassword });
  const isDead = token === undefined || (reset.error instanceof RequestError && reset.error.code === 'invalid_token');
  return (
    <OutsideLayout
      title={isInvited ? 'Choose your password' : 'Set a new password'}
      footer={!reset.isSuccess && <TextLink to="/sign-in">Go to sign in</TextLink>}
    >
      {isDead && (
        <Alert color="red" role="alert" title="This link no longer works">
          It was used already, its time is over, or a part of it is missing.{' '}
          {isInvited ? (
            'Ask the operator who sent it for another one.'
          ) : (
            <TextLink to="/forgot-password">Ask for another one.</TextLink>
          )}
        </Alert>
      )}
      {reset.isSuccess && (
        <>
          <Alert color="green" role="status" title={isInvited ? 'Your password is set' : 'The new password is set'}>
            {isInvited
              ? 'Sign in with your email and this password now.'
              : 'Your other sessions have ended. Sign in with the new password now.'}
          </Alert>
          <Button fullWidth renderRoot={(props) => <Link to="/sign-in" {...props} />}>
            Sign in
          </Button>
        </>
      )}
      {!isDead && !reset.isSuccess && (
        <form onSubmit={(event) => reset.mutate({ newPassword: readForm(event).password ?? '', token })}>
          <Stack gap="sm">
            <NewPasswordInput label={isInvited ? 'Password' : 'New password'} name="password" autoFocus />
            <FormError error={reset.error} />
            <Button type="submit" loading={reset.isPending} fullWidth>
              Set the password
            </Button>
          </Stack>
        </form>
      )}
    </OutsideLayout>
  );
}
