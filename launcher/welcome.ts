import { type FirstOperator, firstOperatorEmail } from './first-operator.ts';

/** Data of the welcome text, known once everything runs. */
export interface Welcome {
  readonly baseUrl: string;
  /**
   * The key to use; `environment`: the one in SLUICE_BOOTSTRAP_KEY, which is not printed; `file`: the one in `keyFile`, which is not
   * printed either; `revoked`: none can be shown.
   */
  readonly key: { readonly text: string } | 'environment' | 'file' | 'revoked';
  /** The file with the key's text. */
  readonly keyFile: string;
  /**
   * The first user of the console; `environment`: the one of SLUICE_ADMIN_EMAIL; `removed`: operators have removed it;
   * `unknown_password`: the file of its password is lost.
   */
  readonly operator: FirstOperator | 'environment' | 'removed' | 'unknown_password';
  /** The model of the example. */
  readonly model: string;
  /** Whether the built-in sandbox vendor runs. */
  readonly sandbox: boolean;
  readonly vendors: readonly string[];
  readonly redis: string;
  readonly dataDir: string;
  readonly apiProcesses: number;
  readonly workerProcesses: number;
}

/** The same with the files of the secrets in their place: for an output that is kept. */
export function withoutSecrets(welcome: Welcome): Welcome {
  const { key, operator } = welcome;
  return {
    ...welcome,
    key: typeof key === 'object' ? 'file' : key,
    operator: typeof operator === 'object' ? { ...operator, isNew: false } : operator,
  };
}

/** The text that `npm start` prints, with a command line to paste. */
export function welcomeText(welcome: Welcome): string {
  const { baseUrl, model, vendors, redis, dataDir } = welcome;
  const line = (name: string, value: string): string => `  ${name.padEnd(12)}${value}`;
  const body = JSON.stringify({ model, messages: [{ role: 'user', content: 'Hello!' }], stream: true });
  return [
    'Sluice is running.',
    '',
    line('Base URL', `${baseUrl}/v1`),
    line('API key', keyText(welcome)),
    line('Start page', `${baseUrl}/`),
    line('Console', `${baseUrl}/console`),
    line('Sign in', operatorText(welcome)),
    line('Vendors', vendors.length > 0 ? vendors.join(', ') : 'none: set OPENAI_API_KEY, or SLUICE_SANDBOX=on'),
    ...(welcome.sandbox ? [line('', 'The sandbox is a built-in stand-in, not a real model.')] : []),
    line('Processes', processesText(welcome)),
    line('Redis', redis),
    line('Data', dataDir),
    '',
    'Try it:',
    '',
    `  curl -N ${baseUrl}/v1/chat/completions \\`,
    // Double quotes: the shell substitutes the variable.
    `    -H "Authorization: Bearer ${bearerOf(welcome)}" \\`,
    `    -H "Content-Type: application/json" \\`,
    `    -d '${body}'`,
    '',
    `Also responses, messages, embeddings, images, audio and videos: ${baseUrl}/ has examples to paste.`,
    'Stop it with Ctrl-C.',
    '',
  ].join('\n');
}

function processesText({ apiProcesses, workerProcesses, sandbox }: Welcome): string {
  const several = (count: number, role: string): string => (count === 1 ? role : `${count} ${role}s`);
  return [several(apiProcesses, 'api'), several(workerProcesses, 'worker'), ...(sandbox ? ['sandbox'] : [])].join(', ');
}

/** The password is shown only once: it may have been changed since. */
function operatorText({ operator }: Welcome): string {
  if (operator === 'environment') return 'as SLUICE_ADMIN_EMAIL, with SLUICE_ADMIN_PASSWORD';
  if (operator === 'removed') return 'as an operator; the first one was removed';
  if (operator === 'unknown_password') {
    return `${firstOperatorEmail}; if its password is lost: npm run users -- reset-link ${firstOperatorEmail}`;
  }
  const { email, password, file, isNew } = operator;
  return isNew ? `${email}, password ${password} (kept in ${file})` : `${email}, first password in ${file}`;
}

function bearerOf({ key, keyFile }: Welcome): string {
  if (key === 'file') return `$(cat ${keyFile})`;
  return typeof key === 'object' ? key.text : '$SLUICE_BOOTSTRAP_KEY';
}

function keyText({ key, keyFile }: Welcome): string {
  if (key === 'file') return `the one in ${keyFile}`;
  if (key === 'environment') return 'the one in SLUICE_BOOTSTRAP_KEY';
  if (key === 'revoked') return `the one in ${keyFile} is revoked; npm run keys -- create makes another`;
  return key.text;
}
