import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { appRoutes } from '../support/app-routes.ts';
import { isSoak } from '../support/faults/load.ts';
import { Fuzzer } from './fuzzer.ts';
import { samples, socketRoutes } from './samples.ts';
import { SocketFuzzer } from './socket-fuzzer.ts';

/**
 * Reduced, and with SLUICE_SOAK (`npm run soak -- fuzz`) in full. A failure prints its seed; the same requests come again with
 * `SLUICE_FUZZ_SEED=<seed> npm test -- fuzz`.
 */
const size = isSoak
  ? { requests: 1_000_000, messages: 20_000, lanes: 12 }
  : { requests: 2000, messages: 300, lanes: 8 };
const seed = process.env.SLUICE_FUZZ_SEED === undefined ? undefined : Number(process.env.SLUICE_FUZZ_SEED);

/** What an api may take more at the end than once warm, in MiB: its heap breathes. */
const slackMib = 250;

describe('hostile requests', () => {
  test('there is a sample of every route', async () => {
    const known = new Set([...samples.map(({ route }) => route), ...socketRoutes]);
    const missing = (await appRoutes()).filter((route) => !known.has(route));
    assert.deepEqual([...new Set(missing)], []);
  });

  test('every request is answered in its shape, no process ends, and memory stays flat', async (t) => {
    const { findings, memory, ...figures } = await Fuzzer.run({ ...size, seed });
    t.diagnostic(JSON.stringify({ ...figures, memory }));
    const lines = [...new Set(findings)].map(
      ({ route, edits, complaint, times, stack }) =>
        `${route}, ${edits.join(' and ') || 'as it is'} (${times} times): ${complaint}\n    ${stack.split('\n')[0]}`,
    );
    assert.equal(lines.length, 0, `seed ${figures.seed}\n${lines.join('\n')}`);
    assert.ok(memory.end < memory.warm + slackMib, `the api grew from ${memory.warm} to ${memory.end} MiB`);
  });

  test('every message and every frame of a response socket leaves the process alive, and is answered in its shape', async (t) => {
    const { findings, ...figures } = await SocketFuzzer.run({ ...size, seed });
    t.diagnostic(JSON.stringify(figures));
    const lines = findings.map(({ what, complaint }) => `${what.join(' and ')}: ${complaint}`);
    assert.equal(lines.length, 0, `seed ${figures.seed}\n${lines.join('\n')}`);
  });
});
