// Builds dist/: TypeScript compiled, Lua scripts and other assets copied beside their callers, the console bundled.
import { execFileSync } from 'node:child_process';
import { cpSync, readdirSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'vite';

const root = dirname(fileURLToPath(import.meta.url));
const sources = ['api', 'workers', 'shared', 'sandbox', 'launcher'];
const assets = /\.(lua|sql|html|json)$/;
const compiler = join(dirname(createRequire(import.meta.url).resolve('typescript/package.json')), 'bin', 'tsc');

rmSync(join(root, 'dist'), { recursive: true, force: true });
execFileSync(process.execPath, [compiler, '-p', 'tsconfig.build.json'], { cwd: root, stdio: 'inherit' });
for (const source of sources) {
  for (const file of readdirSync(join(root, source), { recursive: true })) {
    if (assets.test(file)) cpSync(join(root, source, file), join(root, 'dist', source, file));
  }
}
await build({ configFile: join(root, 'console', 'vite.config.ts'), logLevel: 'warn' });
