import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { secretOfFile } from './secret-file.ts';

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
const email = 'operator@sluice.localhost';

/** The operator whose password is in the file `operator-password` of the data folder; if missing, with a new password. */
export async function firstOperator(dataDir: string): Promise<FirstOperator> {
  const file = join(dataDir, 'operator-password');
  const { text, isNew } = await secretOfFile(file, () => randomBytes(15).toString('base64url'));
  return { email, password: text, file, isNew };
}
