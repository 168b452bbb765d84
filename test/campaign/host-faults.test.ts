import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';

/** Writes in every way that a process has, when it is told to, and says what became of each. */
const writer = `
import fs, { createWriteStream } from 'node:fs';
import { appendFile, open, writeFile } from 'node:fs/promises';
import { pipeline } from 'node:stream/promises';
const folder = process.argv[1];
async function* chunks() { yield Buffer.from('one'); yield Buffer.from('two'); }
const opened = (write) => async (path) => {
  const file = await open(path, 'w');
  try { await write(file); } finally { await file.close(); }
};
const ways = {
  writeFile: (path) => writeFile(path, 'text'),
  writeFile_streamed: (path) => writeFile(path, chunks()),
  appendFile: (path) => appendFile(path, 'text'),
  handle_writeFile: opened((file) => file.writeFile('text')),
  handle_writeFile_streamed: opened((file) => writeFile(file, chunks())),
  handle_appendFile: opened((file) => file.appendFile('text')),
  handle_write: opened((file) => file.write('text')),
  handle_writev: opened((file) => file.writev([Buffer.from('text')])),
  handle_stream: opened((file) => pipeline(chunks(), file.createWriteStream())),
  stream: (path) => pipeline(chunks(), createWriteStream(path)),
  callback: (path) => new Promise((resolve, reject) => fs.writeFile(path, 'text', (error) => error ? reject(error) : resolve())),
  sync: async (path) => fs.writeFileSync(path, 'text', { flush: true }),
};
process.on('message', async (message) => {
  if (message !== 'write') return;
  const codes = {};
  for (const [name, write] of Object.entries(ways)) {
    codes[name] = await write(folder + '/' + name).then(() => fs.readFileSync(folder + '/' + name).length > 0, (error) => error.code);
  }
  console.log(JSON.stringify(codes));
});
process.send('ready');
`;

describe('faults of a host', () => {
  let child: ChildProcess;
  let folder: string;

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'sluice-test-host-faults-'));
    const preload = new URL('./host-faults.mjs', import.meta.url).href;
    child = spawn(process.execPath, ['--import', preload, '--input-type=module', '-e', writer, folder], {
      stdio: ['ignore', 'pipe', 'inherit', 'ipc'],
    });
    await once(child, 'message');
  });

  after(async () => {
    child.kill('SIGKILL');
    await rm(folder, { recursive: true, force: true });
  });

  async function outcomes(): Promise<Record<string, unknown>> {
    child.send('write');
    const [line] = (await once(child.stdout as NodeJS.ReadableStream, 'data')) as [Buffer];
    return JSON.parse(line.toString()) as Record<string, unknown>;
  }

  test('a full disk refuses every way of writing a file, takes them again afterwards, and never stops standard output', async () => {
    const before = await outcomes();
    child.send({ isDiskFull: true });
    const whileFull = await outcomes();
    child.send({ isDiskFull: false });
    const afterwards = await outcomes();
    for (const name of Object.keys(before)) {
      assert.deepEqual([before[name], whileFull[name], afterwards[name]], [true, 'ENOSPC', true], name);
    }
  });
});
