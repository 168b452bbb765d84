// The languages whose published clients are tested, and agents of the command line beside them: which toolchain each needs, how its
// clients are installed, and the programs that use them.
import { spawnSync } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { delimiter, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { installOnce, installPackages, runTool } from '../install-packages.mjs';
import { installPython, pythonIn } from '../python/install-python.mjs';

const folder = dirname(fileURLToPath(import.meta.url));

/** Programs in a language's folder, by the ending of their names, as the command that `toCommand` makes of each. */
function programsIn(path, ending, toCommand) {
  return readdirSync(join(folder, path))
    .filter((file) => file.endsWith(ending))
    .sort()
    .map((file) => ({ client: file.slice(0, -ending.length), command: toCommand(join(folder, path, file)) }));
}

/** Python's clients that do not agree on a version of another are installed apart: a file of requirements each. */
const pythonGroups = {
  newest: ['anthropic-newest', 'langchain-chat', 'openai-agents', 'openai-newest', 'pydantic-ai'],
  'with-openai-2': ['guidance-client', 'instructor-client', 'litellm-client', 'openai-2'],
};

/** The classes of Java's programs, by client. */
const javaPrograms = { 'openai-java': 'OpenaiJava', langchain4j: 'Langchain4j', 'simple-openai': 'SimpleOpenai' };

const goPrograms = ['anthropic-sdk-go', 'openai-go'];

const rustPrograms = ['async-openai', 'genai'];

const languages = {
  javascript: {
    toolchain: [],
    install: () => installPackages(join(folder, 'javascript'), 'the JavaScript clients (test/clients/javascript)'),
    programs: () => programsIn('javascript/programs', '.mjs', (path) => [process.execPath, path]),
  },
  agents: {
    toolchain: [],
    // Their cases are those of the JavaScript clients.
    install: () =>
      Promise.all([
        languages.javascript.install(),
        installPackages(join(folder, 'agents'), 'the agents, some 650 MB (test/clients/agents)'),
      ]),
    programs: () => programsIn('agents/programs', '.mjs', (path) => [process.execPath, path]),
  },
  python: {
    toolchain: [['python3', '-c', 'import ensurepip, sys, venv; sys.exit(sys.version_info < (3, 10))']],
    install: () => Promise.all(Object.keys(pythonGroups).map(installPythonGroup)),
    programs: () =>
      Object.entries(pythonGroups).flatMap(([group, clients]) =>
        clients.map((client) => ({
          client,
          command: [pythonIn(environmentOf(group)), join(folder, 'python', 'programs', `${client}.py`)],
        })),
      ),
  },
  go: {
    // A version that is new enough, and none that would be downloaded.
    toolchain: [['go', '-C', join(folder, 'go'), 'list', '-m']],
    install() {
      const source = join(folder, 'go');
      const target = join(source, '.installed');
      const build = () =>
        runTool('go', ['build', '-o', `${target}/`, ...goPrograms.map((program) => `./${program}`)], source);
      return installOnce(target, sourcesIn(source), 'the Go clients (test/clients/go)', build);
    },
    programs: () => goPrograms.map((client) => ({ client, command: [join(folder, 'go', '.installed', client)] })),
  },
  java: {
    // `--release 17` is refused by an older one.
    toolchain: [
      ['javac', '--release', '17', '--version'],
      ['mvn', '--version'],
    ],
    install() {
      const source = join(folder, 'java');
      const target = join(source, '.installed');
      const build = () => runTool('mvn', ['--quiet', '--batch-mode', 'compile'], source);
      return installOnce(target, sourcesIn(source), 'the Java clients (test/clients/java)', build);
    },
    programs: () => {
      const installed = join(folder, 'java', '.installed');
      const path = [join(installed, 'classes'), join(installed, 'lib', '*')].join(delimiter);
      return Object.entries(javaPrograms).map(([client, name]) => ({ client, command: ['java', '-cp', path, name] }));
    },
  },
  rust: {
    // An older one does not know the edition.
    toolchain: [['cargo', 'metadata', '--no-deps', '--quiet', '--manifest-path', join(folder, 'rust', 'Cargo.toml')]],
    install() {
      const source = join(folder, 'rust');
      const target = join(source, '.installed');
      const build = () => runTool('cargo', ['build', '--quiet', '--locked', '--target-dir', target], source);
      return installOnce(target, sourcesIn(source), 'the Rust clients (test/clients/rust)', build);
    },
    programs: () =>
      rustPrograms.map((client) => ({ client, command: [join(folder, 'rust', '.installed', 'debug', client)] })),
  },
};

export const languageNames = Object.keys(languages);

/** The first command of a language's toolchain that this machine lacks; undefined: it has them all. */
export function missingTool(name) {
  const env = { ...process.env, GOTOOLCHAIN: 'local' };
  const lacking = languages[name].toolchain.find(
    ([command, ...args]) => spawnSync(command, args, { env }).status !== 0,
  );
  return lacking?.[0];
}

/**
 * Installs a language's clients, and builds their programs. Does nothing where that is done, so that it needs a registry only once.
 * @throws Error where a tool is missing or fails.
 */
export async function installClients(name) {
  const missing = missingTool(name);
  if (missing !== undefined) throw new Error(`Published clients, ${name}: they need a fitting ${missing}.`);
  await languages[name].install();
}

/** The programs of a language, one a client: its name and how it is started. */
export function clientPrograms(name) {
  return languages[name].programs();
}

function environmentOf(group) {
  return join(folder, 'python', '.installed', group);
}

async function installPythonGroup(group) {
  const files = [`${group}.txt`, `${group}.lock.txt`].map((file) => join(folder, 'python', 'requirements', file));
  const what = `the Python clients (test/clients/python/requirements/${group}.txt)`;
  await installOnce(environmentOf(group), files, what, () => installPython(environmentOf(group), files[1]));
}

/** The files that a language's programs are built from. */
function sourcesIn(source) {
  return readdirSync(source, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath ?? entry.path, entry.name))
    .filter((path) => !path.startsWith(join(source, '.installed')))
    .sort();
}
