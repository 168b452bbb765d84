import { execFile } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('../..', import.meta.url));

/** Plain data that is to be of a type which a package exports. */
export interface TypedValue {
  readonly name: string;
  /** As an import writes it: `import type OpenAI from 'openai'`. */
  readonly imports: string;
  /** `OpenAI.Chat.ChatCompletionCreateParams` */
  readonly type: string;
  readonly value: unknown;
}

/**
 * Has the compiler hold each value against its type, as if a program had it written there: what is missing, of another
 * type or unknown to the type is a mistake. Returns the mistakes, by the values' names.
 */
export async function typeMistakes(values: readonly TypedValue[]): Promise<Map<string, string>> {
  // Inside of the project, where the packages are found.
  const folder = await mkdtemp(join(root, 'node_modules/.sdk-types-'));
  try {
    const imports = [...new Set(values.map((each) => each.imports))];
    // One value to a line: that is how its mistakes are told from another's.
    const lines = values.map(({ type, value }, at) => `export const value${at}: ${type} = ${asSource(value)};`);
    await writeFile(join(folder, 'values.ts'), `${[...imports, ...lines].join('\n')}\n`);
    const options = { strict: true, exactOptionalPropertyTypes: true, skipLibCheck: true, noEmit: true };
    const compilerOptions = {
      ...options,
      target: 'es2023',
      lib: ['es2023', 'dom'],
      module: 'nodenext',
      types: ['node'],
    };
    await writeFile(join(folder, 'tsconfig.json'), JSON.stringify({ compilerOptions, files: ['values.ts'] }));
    const mistakes = new Map<string, string>();
    for (const [, line = '', text = ''] of (await compile(folder)).matchAll(
      /values\.ts\((\d+),\d+\): (.*(?:\n .*)*)/g,
    )) {
      const { name } = values[Number(line) - 1 - imports.length] ?? { name: 'the imports' };
      mistakes.set(name, text);
    }
    return mistakes;
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** JSON is an expression, too; bytes, which JSON has as base64, are an array of them in every SDK. */
function asSource(value: unknown): string {
  return JSON.stringify(value).replace(/"bytes":"[A-Za-z0-9+/=]*"/g, '"bytes":new Uint8Array()');
}

/** What the compiler says. @throws Error where it did not run */
function compile(folder: string): Promise<string> {
  return new Promise((resolve, reject) => {
    execFile(
      process.execPath,
      [join(root, 'node_modules/.bin/tsc'), '-p', folder, '--pretty', 'false'],
      (error, stdout, stderr) => {
        if (error !== null && stdout === '') reject(new Error(`the compiler did not run: ${stderr}`, { cause: error }));
        else resolve(stdout);
      },
    );
  });
}
