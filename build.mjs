// Builds dist/: the types checked, every program bundled, Lua scripts and other assets copied to where their modules were,
// the console bundled. A program in few files starts in half the time: most of it would go into finding and reading the
// hundreds of files of the packages. It is built beside dist/ and then takes its place, and never under a gateway that runs
// from there. With --quick, as `npm start` has it, the types are not checked, and what is built already stays.
import { execFile } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, readdirSync, renameSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { build } from 'vite';
import { hashSources, isBuilt, lockBuild, sourceFolders, stampBuild } from './build-state.mjs';

const root = dirname(fileURLToPath(import.meta.url));
const dist = join(root, 'dist');
/** Where it is built, and where the one before goes until it is deleted: names that git ignores. */
const [next, last] = [`${dist}.next`, `${dist}.last`];
const isQuick = process.argv.includes('--quick');
const assets = /\.(lua|sql|html|json|txt)$/;
/** Modules that are started, as processes or as threads. */
const programs = [
  ...[
    'api/main',
    'api/ledger/main',
    'workers/main',
    'sandbox/main',
    'launcher/main',
    'launcher/keys',
    'launcher/migrate',
    'launcher/users',
    'launcher/in-memory-redis',
  ],
  ...[
    'shared/config/config-thread',
    'shared/database/sqlite-thread',
    'api/pipeline/large-bodies/large-body-thread',
    'workers/usage/token-counter-thread',
  ],
  ...['sandbox/videos/video-thread'],
];
/** Dependencies that stay in node_modules: those with files of their own beside them, and those loaded only when needed. */
const unbundled = [
  ...['libsql', 'pino', '@bull-board/api', '@bull-board/koa', 'js-redis-server'],
  ...['exporter-trace-otlp-http', 'resources', 'sdk-trace-base'].map((name) => `@opentelemetry/${name}`),
  ...['pg', 'better-auth', 'nodemailer', '@aws-sdk/client-s3', '@aws-sdk/s3-request-presigner'],
];

/** A path of dist in a bundle's code, until it is known from which file it is seen. */
const distMark = '@sluice-dist/';

/** Our modules find their assets and threads by `import.meta.url`: in a bundle, too, it is the place of the module itself. */
const placesOfModules = {
  name: 'places-of-modules',
  transform(code, id) {
    if (!sourceFolders.some((source) => id.startsWith(join(root, source, '/')))) return null;
    const place = relative(root, id).replaceAll('\\', '/').replace(/\.ts$/, '.js');
    return code.replaceAll('import.meta.url', `new URL('${distMark}${place}', import.meta.url).href`);
  },
  renderChunk: (code, { fileName }) => code.replaceAll(distMark, '../'.repeat(fileName.split('/').length - 1)),
};

/** Changes the code of each bundle once it is written. */
const changeBundles = (name, change) => ({
  name,
  generateBundle(_, bundle) {
    for (const chunk of Object.values(bundle)) if (chunk.type === 'chunk') chunk.code = change(chunk.code, this);
  },
});

/**
 * V8 keeps the code of a file for as long as it runs, with two bytes for each character if one of them needs them: a single `…`
 * would take megabytes in every process. Template literals that are read raw have no such characters.
 */
const codeOfOneByte = changeBundles('code-of-one-byte', escapeCode);

function escapeCode(code) {
  return code.replace(/(\\*)([^\0-\xff])/g, (_, slashes, character) => {
    const escaped = `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`;
    // After a backslash of its own it is the character itself.
    return slashes.length % 2 === 0 ? slashes + escaped : slashes.slice(1) + escaped;
  });
}

/**
 * An `import` of a module of Node reads all that it exports, and one export of `node:http` (`WebSocket`) loads Node's own HTTP client,
 * which nothing here needs: a twentieth of a start, and some megabytes.
 */
const httpByName = changeBundles('http-by-name', importHttpByName);

function importHttpByName(code) {
  const imports = /^import (\w+|\{[^}]*\}) from "(?:node:)?http";$/gm;
  return code.replace(imports, (_, names) => {
    return `const ${names.replaceAll(' as ', ': ')} = process.getBuiltinModule("node:http");`;
  });
}

/**
 * The main module of `undici` loads all of it, its `fetch` and its mocks, too, and with them Node's own copy: two thirds of its 80 ms
 * and of its 30 MB. Bundles have the classes that are used; a further one that a module imports ends the build.
 */
const partsOfUndici = {
  name: 'parts-of-undici',
  // Before Vite's own search for packages.
  enforce: 'pre',
  resolveId: (id) => (id === 'undici' ? '\0parts-of-undici' : null),
  load: (id) =>
    id !== '\0parts-of-undici'
      ? null
      : `import Dispatcher from 'undici/lib/dispatcher/dispatcher.js';
         import methods from 'undici/lib/api/index.js';
         Object.assign(Dispatcher.prototype, methods);
         export { default as Agent } from 'undici/lib/dispatcher/agent.js';
         export { default as Pool } from 'undici/lib/dispatcher/pool.js';
         export { default as buildConnector } from 'undici/lib/core/connect.js';`,
};

/**
 * Since Node 22, V8 allocates a function that is assigned to a property (`command.reject = (error) => …`) among the old objects
 * (`CheckAssigningFunctionLiteralToProperty` in its parser), and so keeps all that the function can reach until the next full
 * collection. Libraries do so for each command and request: a held request of 20 KB survived each small collection, which took
 * several times as long. As the last operand of a comma, the function is an object like any other.
 */
const functionsAmongYoungObjects = changeBundles('functions-among-young-objects', wrapAssignedFunctions);

function wrapAssignedFunctions(code, plugin) {
  const insertions = assignedFunctions(plugin.parse(code)).flatMap(({ start, end }) => [
    [start, '(0, '],
    [end, ')'],
  ]);
  // The last one first, so that those before stay where they are.
  return insertions
    .sort(([one], [other]) => other - one)
    .reduce((wrapped, [at, text]) => wrapped.slice(0, at) + text + wrapped.slice(at), code);
}

function assignedFunctions(node) {
  if (node === null || typeof node !== 'object') return [];
  const children = Object.values(node).flatMap(assignedFunctions);
  const isAssigned =
    node.type === 'AssignmentExpression' &&
    node.left.type === 'MemberExpression' &&
    /^(Arrow)?FunctionExpression$/.test(node.right.type);
  return isAssigned ? [node.right, ...children] : children;
}

async function checkTypes() {
  const compiler = join(
    dirname(createRequire(import.meta.url).resolve('typescript-compiler/package.json')),
    'bin',
    'tsc',
  );
  const types = [compiler, '-p', 'tsconfig.build.json', '--noEmit'];
  await promisify(execFile)(process.execPath, types, { cwd: root }).catch(({ stdout, stderr }) => {
    console.error(`${stdout}${stderr}`.trimEnd());
    process.exit(1);
  });
}

async function bundlePrograms() {
  await build({
    configFile: false,
    root,
    logLevel: 'warn',
    publicDir: false,
    plugins: [partsOfUndici, placesOfModules, httpByName, functionsAmongYoungObjects, codeOfOneByte],
    // CommonJS packages know their folder by a name that modules lack.
    define: { __dirname: 'import.meta.dirname', __filename: 'import.meta.filename' },
    ssr: { noExternal: true, external: unbundled },
    build: {
      ssr: true,
      outDir: next,
      target: 'node20',
      // Stack traces are to be read: names stay, and a mark tells where each module of a bundle begins.
      minify: false,
      rolldownOptions: {
        input: Object.fromEntries(programs.map((program) => [program, join(root, `${program}.ts`)])),
        output: {
          entryFileNames: '[name].js',
          chunkFileNames: 'bundles/[name]-[hash].js',
          keepNames: true,
          comments: false,
        },
        // `depd`, of Koa, makes functions from text. How long a slow machine takes for a plugin is no matter of who starts it.
        checks: { eval: false, bundlerTimings: false },
        experimental: { attachDebugInfo: 'simple' },
      },
    },
  });
}

function copyAssets() {
  for (const source of sourceFolders) {
    for (const file of readdirSync(join(root, source), { recursive: true })) {
      if (assets.test(file)) cpSync(join(root, source, file), join(next, source, file));
    }
  }
}

async function buildAll() {
  const hash = hashSources(root);
  for (const folder of [next, last]) rmSync(folder, { recursive: true, force: true });
  mkdirSync(next);
  await Promise.all([isQuick ? undefined : checkTypes(), bundlePrograms()]);
  copyAssets();
  const console = { root: join(root, 'console'), build: { outDir: join(next, 'console') } };
  await build({ configFile: join(console.root, 'vite.config.ts'), logLevel: 'warn', ...console });
  stampBuild(next, hash);
  if (existsSync(dist)) renameSync(dist, last);
  renameSync(next, dist);
  rmSync(last, { recursive: true, force: true });
}

const unlock = await lockBuild(root, () =>
  console.error('Another build of this folder is under way: waiting for it …'),
);
if (unlock === undefined) {
  console.error(
    'A Sluice runs from this folder, and would break if it were built anew: stop that one first, then start again.',
  );
  process.exit(1);
}
if (!isQuick || !isBuilt(root)) await buildAll();
unlock();
