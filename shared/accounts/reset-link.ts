import { createHash, randomBytes } from 'node:crypto';
import type { Database } from '../database/database.ts';

/** How long a reset link is valid. */
const resetMs = 3_600_000;
/** How long an invitation is valid: the invitee may be away for some days. */
const invitationMs = 7 * 86_400_000;

/** Returns a link for choosing a new password: valid once, within the hour. */
export async function makeResetLink(db: Database, baseUrl: string, userId: string): Promise<string> {
  return resetLinkOf(baseUrl, await makeToken(db, userId, resetMs));
}

/** Returns a link by which a user created by an operator chooses the first password: valid once, within 7 days. */
export async function makeInvitation(db: Database, baseUrl: string, userId: string): Promise<string> {
  return `${resetLinkOf(baseUrl, await makeToken(db, userId, invitationMs))}&invited=true`;
}

/** Creates a token for a new password. The database stores only its hash. */
async function makeToken(db: Database, userId: string, validMs: number): Promise<string> {
  const token = randomBytes(24).toString('base64url');
  const now = new Date();
  const times = { created_at: now.toISOString(), updated_at: now.toISOString() };
  await db
    .insertInto('verifications')
    .values({
      id: randomBytes(16).toString('hex'),
      // In the form better-auth looks up.
      identifier: createHash('sha256').update(`reset-password:${token}`).digest('base64url'),
      value: userId,
      expires_at: new Date(now.getTime() + validMs).toISOString(),
      ...times,
    })
    .execute();
  return token;
}

/** The console's page for a password token. */
export function resetLinkOf(baseUrl: string, token: string): string {
  return `${baseUrl}/console/reset-password?token=${token}`;
}

/** Ends all links and invitations by which a user may choose a password. */
export async function forgetResetLinks(db: Database, userId: string): Promise<void> {
  await db.deleteFrom('verifications').where('value', '=', userId).execute();
}
