import { randomBytes } from 'node:crypto';
import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type ChildOptions, endChild, freePort, runToEnd, startChild, untilReady } from '../children.ts';
import { installerEnvironment, installOnce } from './install.ts';
import { NotInstallable, type TargetKind } from './target.ts';

const version = '0.0.25';

/** Crabllm from crates.io: a gateway in Rust. */
export const crabllm: TargetKind = {
  name: 'crabllm',
  description: `crabllm ${version}, no extensions`,
  // It parses embeddings as lists of numbers, and answers 502 to base64.
  unsupportedCases: ['embeddings'],
  start: async (options) => {
    const installing = { environment: installerEnvironment, logFile: join(options.directory, 'install.log') };
    const folder = await installOnce(
      'crabllm',
      version,
      (fresh) => install(fresh, installing),
      () => checkCargo(installing),
    );
    const port = await freePort();
    const key = `sk-${randomBytes(24).toString('hex')}`;
    const config = join(options.directory, 'crabllm.toml');
    await writeFile(config, configuration(port, key, options.vendorOrigin));
    const child = startChild('crabllm', [join(folder, 'bin', 'crabllm'), 'serve', '--config', config], {
      // It logs every request otherwise.
      environment: { RUST_LOG: 'warn' },
      logFile: join(options.directory, 'crabllm.log'),
    });
    await untilReady(child, 20_000, async () => {
      await fetch(`http://127.0.0.1:${port}/health`);
    });
    return {
      name: 'crabllm',
      origin: `http://127.0.0.1:${port}`,
      headers: { authorization: `Bearer ${key}` },
      processes: [child],
      close: () => endChild(child),
    };
  },
};

/** The timeout of 30 s, by default, is shorter than the paced and the slow streams. */
function configuration(port: number, key: string, vendorOrigin: string): string {
  return `listen = "127.0.0.1:${port}"
openapi = false
shutdown_timeout = 2

[[keys]]
name = "bench"
key = "${key}"
models = ["*"]

[providers.bench]
kind = "openai"
base_url = "${vendorOrigin}/v1"
api_key = "bench"
models = ["gpt-4o-mini", "text-embedding-3-small", "gpt-image-2"]
timeout = 600
`;
}

async function checkCargo(options: ChildOptions): Promise<void> {
  await runToEnd('cargo', ['cargo', '--version'], options, 60_000).catch(() => {
    throw new NotInstallable('it needs cargo');
  });
}

async function install(folder: string, { environment, logFile }: ChildOptions): Promise<void> {
  const target = join(folder, 'target');
  const options = { environment: { ...environment, CARGO_TARGET_DIR: target }, logFile };
  const command = ['cargo', 'install', 'crabllm', '--version', version, '--locked', '--root', folder];
  await runToEnd('cargo install', command, options, 1_800_000).catch((error: Error) => {
    throw new NotInstallable(error.message);
  });
  await rm(target, { recursive: true });
}
