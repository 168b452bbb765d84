import assert from 'node:assert/strict';
import { inspect } from 'node:util';
import { ApiError } from '../../../shared/errors.ts';

/** The error with which a call fails, which holds no secret. */
export async function failureOf(call: Promise<unknown>, secrets: readonly string[]): Promise<ApiError> {
  const thrown = await call.then(
    () => assert.fail('it succeeded'),
    (error: unknown) => error,
  );
  assert.ok(thrown instanceof ApiError, inspect(thrown));
  assertHarmless(thrown, secrets);
  return thrown;
}

/** Nothing of an error, nor of its causes, holds a secret. */
export function assertHarmless(error: ApiError, secrets: readonly string[]): void {
  const said = inspect(error, { depth: 10 });
  for (const secret of secrets) assert.ok(!said.includes(secret), said);
}

/** The error with which every one of these calls, made one after the other, fails alike. */
export async function sameFailureOf(
  calls: readonly (() => Promise<unknown>)[],
  secrets: readonly string[],
): Promise<ApiError> {
  const errors: ApiError[] = [];
  for (const call of calls) errors.push(await failureOf(call(), secrets));
  for (const error of errors) assert.deepEqual(error.toData(), errors[0]?.toData());
  return errors[0] ?? assert.fail('there is no call');
}
