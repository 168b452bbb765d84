import { createHash, randomBytes } from 'node:crypto';
import type { Database } from './database/database.ts';

/** How long a reset link is good for. */
const validMs = 3_600_000;

/** A link by which a user may choose a new password: once, within the hour. The database has only its hash. */
export async function makeResetLink(db: Database, baseUrl: string, userId: string): Promise<string> {
  const token = randomBytes(24).toString('base64url');
  const now = new Date();
  const times = { created_at: now.toISOString(), updated_at: now.toISOString() };
  await db
    .insertInto('verifications')
    .values({
      id: randomBytes(16).toString('hex'),
      // As better-auth looks for it.
      identifier: createHash('sha256').update(`reset-password:${token}`).digest('base64url'),
      value: userId,
      expires_at: new Date(now.getTime() + validMs).toISOString(),
      ...times,
    })
    .execute();
  return resetLinkOf(baseUrl, token);
}

/** The console's page for a token that is good for a new password. */
export function resetLinkOf(baseUrl: string, token: string): string {
  return `${baseUrl}/console/reset-password?token=${token}`;
}
