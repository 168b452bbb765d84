import { Alert, Button, Stack, Text } from '@mantine/core';
import { IconAlertTriangle } from '@tabler/icons-react';
import { RequestError } from '../api/request.ts';

/** The message of an error for the user. */
export function errorText(error: unknown): string {
  return error instanceof Error && error.message !== '' ? error.message : 'Something went wrong here.';
}

/** An error in place of the content, with a button to try again. */
export function ErrorPanel({
  error,
  title = 'This could not be loaded',
  onRetry,
}: {
  error: unknown;
  title?: string;
  onRetry?: (() => void) | undefined;
}) {
  const requestId = error instanceof RequestError ? error.requestId : undefined;
  return (
    <Alert color="red" variant="light" title={title} icon={<IconAlertTriangle aria-hidden />} role="alert">
      <Stack gap="xs" align="flex-start">
        <Text size="sm">{errorText(error)}</Text>
        {requestId !== undefined && (
          <Text size="xs" c="dimmed" style={{ overflowWrap: 'anywhere' }}>
            Request {requestId}
          </Text>
        )}
        {onRetry !== undefined && (
          <Button size="xs" variant="default" onClick={onRetry}>
            Try again
          </Button>
        )}
      </Stack>
    </Alert>
  );
}

/** A failed action's message, beside its button; nothing while `error` is null. */
export function FormError({ error }: { error: unknown }) {
  if (error === null || error === undefined) return null;
  return (
    <Alert color="red" variant="light" icon={<IconAlertTriangle aria-hidden />} role="alert" py="xs">
      {errorText(error)}
    </Alert>
  );
}
