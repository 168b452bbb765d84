import type { ChildProcess } from 'node:child_process';
import { setTimeout as sleep } from 'node:timers/promises';
import { streamed, streamedText } from './chat-requests.ts';
import { sourceProduct, TestGateway } from './gateway.ts';

/** Functions that ran in a process of the gateway, by file. */
type Coverage = Map<string, Set<string>>;

/** From an answer's end until its job is settled, without the record's way into the database, which is read every 250 ms. */
const settleMs = 50;
/** The rest of a request's work, and of its record's. */
const restMs = 800;
/** The record of one of these may be read before its job is counted as settled: hardly that of each. */
const warmUps = 5;
/** Longer than a worker waits for a job at a time, and than the interval of any timer that would run now and then: claims are renewed every 15 s. */
const idleMs = 16_000;

/**
 * Starts a gateway from its sources, and streams two chats after a few that fill the caches. Returns the files of api, workers and
 * shared in which a function ran for both, sorted. Those in which only such functions ran as also run while no request is open are
 * left out: timers, heartbeats, and the ledger, which writes records of ended jobs.
 */
export async function filesRunByStreamedChat(): Promise<string[]> {
  const gateway = await TestGateway.start({ product: sourceProduct, settings: coverageSettings() });
  try {
    const background: Coverage = new Map();
    for (let request = 0; request < warmUps; request++) {
      await streamChat(gateway);
      await sleep(settleMs);
      await takeCoverage(gateway);
      await sleep(restMs);
      await takeCoverage(gateway, background);
    }
    await sleep(idleMs);
    await takeCoverage(gateway, background);
    const isNeeded = ([file, functions]: [string, Set<string>]): boolean =>
      [...functions].some((name) => !background.get(file)?.has(name));
    // What a busy machine adds to one chat (a slow round trip, a timer that has run late) it hardly adds to both.
    let files: string[] | undefined;
    for (let chat = 0; chat < 2; chat++) {
      await streamChat(gateway);
      await sleep(restMs);
      const run = [...(await takeCoverage(gateway))].filter(isNeeded).map(([file]) => file);
      files = files?.filter((file) => run.includes(file)) ?? run;
    }
    return (files as string[]).sort();
  } finally {
    await gateway.stop();
  }
}

/** Versions of Node before 24 run TypeScript by a loader. */
function coverageSettings(): Record<string, string> {
  const loader = Number(process.versions.node.split('.')[0]) < 24 ? '--import tsx ' : '';
  return { NODE_OPTIONS: `${loader}--import ${new URL('./take-coverage.mjs', import.meta.url).href}` };
}

async function streamChat(gateway: TestGateway): Promise<void> {
  const text = await streamedText(await gateway.client().chat.completions.create(streamed('WORDS:20')));
  if (!text.endsWith('word20')) throw new Error(`the chat was not answered: ${text}`);
}

/** Adds what all processes ran since the last call. */
async function takeCoverage(gateway: TestGateway, into: Coverage = new Map()): Promise<Coverage> {
  const processes = [...gateway.apis, ...gateway.workers];
  const taken = await Promise.all(processes.map(({ child }) => askForCoverage(child)));
  for (const [file, functions] of taken.flatMap(Object.entries<string[]>)) {
    into.set(file, new Set([...(into.get(file) ?? []), ...functions]));
  }
  return into;
}

function askForCoverage(child: ChildProcess): Promise<Record<string, string[]>> {
  return new Promise((resolve) => {
    const onMessage = (message: { type?: string; files?: Record<string, string[]> }): void => {
      if (message.type !== 'coverage') return;
      child.off('message', onMessage);
      resolve(message.files ?? {});
    };
    child.on('message', onMessage);
    child.send({ type: 'take_coverage' });
  });
}
