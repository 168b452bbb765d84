import { randomBytes } from 'node:crypto';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type Child, type ChildOptions, endChild, freePort, runToEnd, startChild, untilReady } from '../children.ts';
import { childProcesses } from '../process-usage.ts';
import { installerEnvironment, installOnce } from './install.ts';
import { NotInstallable, type TargetKind, type TargetOptions } from './target.ts';

/** The newest whose own packages are all on PyPI: later ones require versions of litellm-proxy-extras that are not. */
const version = '1.108.7';
const workers = 2;
const models = ['gpt-4o-mini', 'text-embedding-3-small', 'gpt-image-2'];

/** LiteLLM's proxy from PyPI with two workers, as its guide for production says, but without a database. */
export const litellm: TargetKind = {
  name: 'litellm',
  description: `litellm[proxy] ${version}, ${workers} workers, no database`,
  start: async (options) => {
    const installing = { environment: installerEnvironment, logFile: join(options.directory, 'install.log') };
    const folder = await installOnce(
      'litellm',
      version,
      (fresh) => install(fresh, installing),
      () => checkPython(installing),
    );
    const port = await freePort();
    const masterKey = `sk-${randomBytes(24).toString('hex')}`;
    const child = startChild('litellm', await commandOf(folder, port, options), {
      // Also where it would look for a file of environment variables.
      directory: options.directory,
      environment: environmentOf(masterKey, options),
      logFile: join(options.directory, 'litellm.log'),
    });
    await untilReady(child, 60_000, () => expectWorkers(child));
    return {
      name: 'litellm',
      origin: `http://127.0.0.1:${port}`,
      headers: { authorization: `Bearer ${masterKey}` },
      processes: [{ name: 'parent', pid: child.pid }, ...namedChildren(child.pid)],
      close: () => endChild(child),
    };
  },
};

async function commandOf(folder: string, port: number, { directory, vendorOrigin }: TargetOptions): Promise<string[]> {
  const config = join(directory, 'config.yaml');
  const model = (name: string) => ({
    model_name: name,
    litellm_params: { model: `openai/${name}`, api_base: `${vendorOrigin}/v1`, api_key: 'bench' },
  });
  // JSON is YAML.
  await writeFile(config, JSON.stringify({ model_list: models.map(model) }));
  const logConfig = join(directory, 'log-config.json');
  await writeFile(logConfig, JSON.stringify(logging));
  // By its module: the scripts of a virtual environment contain the path at which it was created.
  const command = [join(folder, 'bin', 'python'), '-m', 'litellm.proxy.proxy_cli', '--num_workers', String(workers)];
  return [...command, '--host', '127.0.0.1', '--port', String(port), '--config', config, '--log_config', logConfig];
}

/** No access log; of the server's own messages, those that say when a worker is ready. */
const logging = {
  version: 1,
  disable_existing_loggers: false,
  handlers: { console: { class: 'logging.StreamHandler', stream: 'ext://sys.stdout' } },
  loggers: { uvicorn: { handlers: ['console'], level: 'INFO' }, 'uvicorn.access': { level: 'WARNING' } },
};

function environmentOf(masterKey: string, { concurrency }: TargetOptions): Record<string, string> {
  return {
    LITELLM_MASTER_KEY: masterKey,
    LITELLM_MODE: 'PRODUCTION',
    LITELLM_LOG: 'ERROR',
    LITELLM_TELEMETRY_DISABLED: 'true',
    // It would fetch both from GitHub when it starts.
    LITELLM_LOCAL_MODEL_COST_MAP: 'true',
    LITELLM_LOCAL_ANTHROPIC_BETA_HEADERS: 'true',
    ...(concurrency && {
      AIOHTTP_CONNECTOR_LIMIT: String(concurrency),
      AIOHTTP_CONNECTOR_LIMIT_PER_HOST: String(concurrency),
    }),
  };
}

/** All workers: they share one socket, so an answer only shows that one of them is ready. */
async function expectWorkers(child: Child): Promise<void> {
  const ready = (await readFile(child.logFile, 'utf8')).split('Application startup complete').length - 1;
  if (ready < workers) throw new Error(`${ready} of ${workers} workers are ready`);
}

function namedChildren(parent: number): { name: string; pid: number }[] {
  let worker = 0;
  return childProcesses(parent).map(({ pid, command }) => {
    if (command.includes('resource_tracker')) return { name: 'tracker', pid };
    worker += 1;
    return { name: `worker ${worker}`, pid };
  });
}

async function checkPython(options: ChildOptions): Promise<void> {
  const check = 'import ensurepip, sys, venv; sys.exit(sys.version_info < (3, 10))';
  await runToEnd('python3', ['python3', '-c', check], options, 60_000).catch(() => {
    throw new NotInstallable('it needs python3, 3.10 or later, with venv');
  });
}

async function install(folder: string, options: ChildOptions): Promise<void> {
  try {
    await runToEnd('python3 -m venv', ['python3', '-m', 'venv', folder], options, 120_000);
    const pip = [join(folder, 'bin', 'python'), '-m', 'pip', 'install', '--only-binary', ':all:'];
    await runToEnd('pip install', [...pip, `litellm[proxy]==${version}`], options, 900_000);
  } catch (error) {
    throw new NotInstallable(error instanceof Error ? error.message : String(error));
  }
}
