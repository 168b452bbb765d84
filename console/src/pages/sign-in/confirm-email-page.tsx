import { Alert, Button, Stack, Text } from '@mantine/core';
import { useMutation } from '@tanstack/react-query';
import { getRouteApi, Link } from '@tanstack/react-router';
import { confirmEmail } from '../../api/auth.ts';
import { FormError } from '../../components/error-panel.tsx';
import { OutsideLayout } from '../../shell/outside-layout.tsx';

const route = getRouteApi('/confirm-email');

/** Target of a mail's link. The user must confirm, as mail programs open links themselves. */
export function ConfirmEmailPage() {
  const { token = '' } = route.useSearch();
  const confirm = useMutation({ mutationFn: confirmEmail });
  return (
    <OutsideLayout title="Confirm your email address">
      {confirm.isSuccess ? (
        <>
          <Alert color="green" role="status" title="Your address is confirmed">
            You can sign in now.
          </Alert>
          <Button fullWidth renderRoot={(props) => <Link to="/sign-in" {...props} />}>
            Sign in
          </Button>
        </>
      ) : (
        <Stack gap="sm">
          <Text size="sm">Confirm only if you have just signed up, or signed in, with this address yourself.</Text>
          <FormError error={confirm.error} />
          <Button fullWidth loading={confirm.isPending} onClick={() => confirm.mutate(token)}>
            Confirm
          </Button>
        </Stack>
      )}
    </OutsideLayout>
  );
}
