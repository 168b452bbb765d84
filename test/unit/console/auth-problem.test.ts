import assert from 'node:assert/strict';
import { test } from 'node:test';

// By its address: the console's types are checked apart from these.
const module = new URL('../../../console/src/api/auth-problem.ts', import.meta.url).href;
const { authProblem } = (await import(module)) as {
  authProblem: (error: { message: string; status: number; code: string; retryAfterMs?: number }) => string;
};

test('whoever has entered too many wrong codes reads what to do next, and for how long none is taken', () => {
  const told = (status: number, code: string): string =>
    authProblem({ message: 'Words for programs.', status, code, retryAfterMs: 120_000 });
  assert.match(told(400, 'too_many_attempts_request_new_code'), /sign in again/);
  assert.match(told(429, 'account_temporarily_locked'), /15 minutes/);
  assert.match(told(429, 'rate_limit_exceeded'), /too many attempts.* in 2 minutes/);
});
