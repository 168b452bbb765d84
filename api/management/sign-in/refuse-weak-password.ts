import { APIError, type createAuthMiddleware, getSessionFromCtx } from 'better-auth/api';
import { passwordProblem } from './password-rules.ts';

type Call = Parameters<Parameters<typeof createAuthMiddleware>[0]>[0];

/** Routes of better-auth that take a new password: the field, and the user's address. */
const newPasswords: Readonly<
  Record<string, { readonly field: string; readonly email: (call: Call) => Promise<string | undefined> }>
> = {
  '/sign-up/email': { field: 'password', email: async ({ body }) => body.email },
  '/change-password': {
    field: 'newPassword',
    email: async (call) => (await getSessionFromCtx(call))?.user.email,
  },
  '/reset-password': { field: 'newPassword', email: ownerOfLink },
};

/** Runs before better-auth's own routes. @throws APIError 400 for an unacceptable password. */
export async function refuseWeakPassword(call: Call): Promise<void> {
  const way = newPasswords[call.path];
  if (way === undefined) return;
  const problem = passwordProblem(String(call.body[way.field] ?? ''), await way.email(call));
  if (problem !== undefined) throw APIError.from('BAD_REQUEST', problem);
}

async function ownerOfLink({ body, context: { internalAdapter } }: Call): Promise<string | undefined> {
  const link = await internalAdapter.findVerificationValue(`reset-password:${body.token}`);
  return link === null ? undefined : (await internalAdapter.findUserById(link.value))?.email;
}
