import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import type { Database } from '../shared/database/database.ts';
import { readSecretFile, secretOfFile } from './secret-file.ts';

/** The gateway's first operator; the api creates it if there is none yet. */
export interface FirstOperator {
  readonly email: string;
  readonly password: string;
  /** The file with the password, readable by its owner only. It keeps the initial password. */
  readonly file: string;
  /** Whether it was just created. */
  readonly isNew: boolean;
}

/** Receives no mail: under RFC 6761 the name resolves to this machine. */
export const firstOperatorEmail = 'operator@sluice.localhost';

/**
 * The operator whose password is in the file `operator-password` of the data folder; if missing, with a new password.
 * `unknown_password`: there is no such file, and the database has the operator, whose password stays as it is.
 */
export async function firstOperator(db: Database, dataDir: string): Promise<FirstOperator | 'unknown_password'> {
  const file = join(dataDir, 'operator-password');
  if ((await readSecretFile(file)) === undefined && (await isFirstOperator(db))) return 'unknown_password';
  const { text, isNew } = await secretOfFile(file, () => randomBytes(15).toString('base64url'));
  return { email: firstOperatorEmail, password: text, file, isNew };
}

/** Whether the first operator, whom the api makes once, is one now. */
export async function isFirstOperator(db: Database): Promise<boolean> {
  const users = db.selectFrom('users').select('id').where('email', '=', firstOperatorEmail);
  return (await users.where('role', '=', 'operator').executeTakeFirst()) !== undefined;
}
