import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { after, before, describe, it } from 'node:test';
import { TestGateway } from '../support/gateway.ts';
import { type ClientProgram, clientPrograms } from './languages.mjs';

/** What every client is tried at, over each API that it speaks. A program names its cases `<api>, <kind>`. */
const kinds = ['held', 'streamed', 'tool turn', 'structured output', 'error'];

/** What a client has no means for, or what its program cannot ask of it. */
const without: Record<string, readonly string[]> = {
  // What agents ask has no form, and this one streams every answer.
  cline: ['chat, held', 'native responses, held', 'chat, structured output', 'native responses, structured output'],
  copilot: ['chat', 'responses', 'native responses', 'responses by WebSocket', 'messages', 'azure'].map(
    (api) => `${api}, structured output`,
  ),
  // It streams every answer.
  'guidance-client': ['chat, held'],
  // What it calls a tool is the form of its structured output.
  'instructor-client': ['tools, tool turn', 'json schema, tool turn'],
};

/** Programs at a time: they load modules longer than they ask. */
const concurrency = 2;

/** A program that hangs is a failure; agents start a process for each case. */
const deadlineMs = { agents: 900_000, others: 240_000 };

/** A line that a program prints: one case. */
interface Case {
  name: string;
  ok: boolean;
  detail: string;
}

interface Run {
  cases: Case[];
  code: number | null;
  output: string;
}

/**
 * Tests of a language's clients against a gateway whose vendor is the sandbox. Each client's program is told where the
 * gateway is by SLUICE_BASE_URL (without `/v1`) and SLUICE_API_KEY, and prints a line of JSON for each case: `name`, `ok`, `detail`.
 */
export function testClients(language: string): void {
  const timeout = language === 'agents' ? deadlineMs.agents : deadlineMs.others;
  describe(`published clients: ${language}`, { concurrency }, () => {
    let gateway: TestGateway;
    before(async () => {
      gateway = await TestGateway.start();
    });
    after(() => gateway.stop());

    for (const program of clientPrograms(language)) {
      it(`${program.client} gets what it asks for`, { timeout: timeout + 10_000 }, async (test) => {
        const { cases, code, output } = await runProgram(program, gateway, timeout);
        for (const { name, ok, detail } of cases) await test.test(name, () => assert.ok(ok, detail));
        assert.equal(code, 0, `the program ends by itself: ${output}`);
        const apis = [...new Set(cases.map(({ name }) => name.split(', ')[0] as string))];
        assert.notEqual(apis.length, 0, `the program tells of its cases: ${output}`);
        const wanted = apis.flatMap((api) => kinds.map((kind) => `${api}, ${kind}`));
        const missing = new Set([...cases.map(({ name }) => name), ...(without[program.client] ?? [])]);
        assert.deepEqual(
          wanted.filter((name) => !missing.has(name)),
          [],
          'every kind of case was tried',
        );
      });
    }
  });
}

async function runProgram(
  { command: [command, ...args] }: ClientProgram,
  gateway: TestGateway,
  timeout: number,
): Promise<Run> {
  const child = spawn(command as string, args, {
    // Python's clients share modules, which need not be compiled for each anew.
    env: { ...process.env, SLUICE_BASE_URL: gateway.url, SLUICE_API_KEY: gateway.apiKey, PYTHONDONTWRITEBYTECODE: '' },
    stdio: ['ignore', 'pipe', 'pipe'],
    timeout,
    killSignal: 'SIGKILL',
  });
  let lines = '';
  let output = '';
  child.stdout.on('data', (chunk: Buffer) => {
    lines += chunk.toString();
  });
  child.stderr.on('data', (chunk: Buffer) => {
    output = (output + chunk.toString()).slice(-4000);
  });
  const [code] = (await once(child, 'close')) as [number | null];
  const cases = lines
    .split('\n')
    .filter((line) => line.startsWith('{"name"'))
    .map((line) => JSON.parse(line) as Case);
  return { cases, code, output: output || lines.slice(-4000) };
}
