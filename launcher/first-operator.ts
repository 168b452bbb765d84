import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { secretOfFile } from './secret-file.ts';

/** The operator that a gateway begins with; the api makes it where there is none yet. */
export interface FirstOperator {
  readonly email: string;
  readonly password: string;
  /** The file that has the password, readable by its owner only. It keeps what the operator began with. */
  readonly file: string;
  /** Whether it was made just now. */
  readonly isNew: boolean;
}

/** No mail goes there: the name ends, as RFC 6761 has it, on this machine. */
const email = 'operator@sluice.localhost';

/** The operator whose password is in the file `operator-password` in the data folder; without the file a new password. */
export async function firstOperator(dataDir: string): Promise<FirstOperator> {
  const file = join(dataDir, 'operator-password');
  const { text, isNew } = await secretOfFile(file, () => randomBytes(15).toString('base64url'));
  return { email, password: text, file, isNew };
}
