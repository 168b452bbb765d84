import { Button, Stack, TextInput } from '@mantine/core';
import { useMutation } from '@tanstack/react-query';
import { giveCode } from '../../api/auth.ts';
import { FormError } from '../../components/error-panel.tsx';
import { readForm } from '../../components/read-form.ts';
import { OutsideLayout } from '../../shell/outside-layout.tsx';

/** The second step of a sign-in, for users with an authenticator. */
export function CodeStep({ onDone, onAgain }: { onDone: () => unknown; onAgain: () => void }) {
  const give = useMutation({ mutationFn: giveCode, onSuccess: onDone });
  return (
    <OutsideLayout
      title="Enter a code"
      description="Your password is right. Now enter the code of your authenticator app."
    >
      <form onSubmit={(event) => give.mutate(readForm(event).code ?? '')}>
        <Stack gap="sm">
          <TextInput
            label="Code"
            name="code"
            description="Six digits, or one of your backup codes."
            autoComplete="one-time-code"
            required
            maxLength={40}
            autoFocus
          />
          <FormError error={give.error} />
          <Button type="submit" loading={give.isPending} fullWidth>
            Continue
          </Button>
          <Button variant="subtle" onClick={onAgain} fullWidth>
            Back to sign in
          </Button>
        </Stack>
      </form>
    </OutsideLayout>
  );
}
