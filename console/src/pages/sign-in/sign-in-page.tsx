import { Anchor, Button, Checkbox, Divider, Stack, Text, TextInput } from '@mantine/core';
import { useMutation, useQuery } from '@tanstack/react-query';
import { getRouteApi, useNavigate } from '@tanstack/react-router';
import { signIn, startOidc } from '../../api/auth.ts';
import { readSession } from '../../api/session.ts';
import { settingsQuery } from '../../api/settings.ts';
import { ErrorPanel, FormError } from '../../components/error-panel.tsx';
import { PasswordField } from '../../components/password-field.tsx';
import { readForm } from '../../components/read-form.ts';
import { TextLink } from '../../components/text-link.tsx';
import { OutsideLayout } from '../../shell/outside-layout.tsx';
import { CodeStep } from './code-step.tsx';
import { oidcProblem } from './oidc-problem.ts';

const route = getRouteApi('/sign-in');

/** Signs in by email and password, or by the operator's identity provider, and returns to the previous page. */
export function SignInPage() {
  const search = route.useSearch();
  const navigate = useNavigate();
  const settings = useQuery(settingsQuery);
  const back = search.return ?? '/';
  const goBack = () => navigate({ to: back, replace: true });
  const byPassword = useMutation({
    mutationFn: signIn,
    onSuccess: ({ twoFactorRedirect }) => (twoFactorRedirect ? undefined : goBack()),
  });
  const byProvider = useMutation({
    mutationFn: () => startOidc(`/console${back}`),
    onSuccess: ({ url }) => window.location.assign(url),
  });
  // Its own, not the cached one: whoever has just signed out has that for a moment.
  const session = useQuery({
    ...{ queryKey: ['/session', 'at the sign-in'], queryFn: readSession },
    ...{ staleTime: 0, gcTime: 0, retry: false },
  });
  const { sign_up: signUp = false, oidc = null } = settings.data ?? {};
  if (byPassword.data?.twoFactorRedirect) return <CodeStep onDone={goBack} onAgain={() => byPassword.reset()} />;
  return (
    <OutsideLayout
      title="Sign in"
      footer={
        <>
          {signUp && (
            <span>
              No account yet?{' '}
              <TextLink to="/sign-up" search={search}>
                Sign up
              </TextLink>
            </span>
          )}
          <TextLink to="/forgot-password">Forgot your password?</TextLink>
        </>
      }
    >
      {settings.error !== null && (
        <ErrorPanel
          error={settings.error}
          title="The gateway does not answer"
          onRetry={() => void settings.refetch()}
        />
      )}
      {search.ended && (
        <Text size="sm" role="status">
          Your session has ended. Sign in to return to the page.
        </Text>
      )}
      {session.isSuccess && !byPassword.isSuccess && (
        <Text size="sm" role="status">
          You are signed in as {session.data.user.email}.{' '}
          <Anchor component="button" type="button" inherit underline="always" onClick={() => void goBack()}>
            Go on to the console
          </Anchor>
          , or sign in as somebody else.
        </Text>
      )}
      {search.error !== undefined && <FormError error={oidcProblem(search.error)} />}
      <form
        onSubmit={(event) => {
          const { email = '', password = '', remember } = readForm(event);
          byPassword.mutate({ email, password, rememberMe: remember !== undefined });
        }}
      >
        <Stack gap="sm">
          <TextInput label="Email" name="email" type="email" autoComplete="username" required autoFocus />
          <PasswordField label="Password" name="password" autoComplete="current-password" />
          <Checkbox label="Stay signed in" name="remember" defaultChecked />
          <FormError error={byPassword.error} />
          <Button type="submit" loading={byPassword.isPending} fullWidth>
            Sign in
          </Button>
        </Stack>
      </form>
      {oidc !== null && (
        <Stack gap="sm">
          <Divider label="or" />
          <FormError error={byProvider.error} />
          <Button variant="default" fullWidth loading={byProvider.isPending} onClick={() => byProvider.mutate()}>
            Sign in with {oidc.name}
          </Button>
        </Stack>
      )}
    </OutsideLayout>
  );
}
