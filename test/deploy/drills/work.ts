import { setTimeout as delay } from 'node:timers/promises';
import { held, streamed } from '../../support/chat-requests.ts';
import { eventually } from '../../support/eventually.ts';
import { type FixtureVendor, sendJson, startFixtureVendor } from '../../vendors/contracts/fixture-vendor.ts';
import { errorBody } from '../../vendors/recorded/recorded-openai.ts';
import type { Drill, Stage } from './stage.ts';

/** Longer than a drill: two hundred seconds. */
const longText = 'WORDS:4000@20';

/** What is open for one drill between its two steps. */
const opened = new WeakMap<Stage, { readonly pause: () => void; readonly resume: () => void }>();

const withoutWorkers: Drill = {
  fault: 'jobs are queued, and no worker runs',
  alerts: ['SluiceNoWorkers', 'SluiceQueueOld'],
  open: async (stage) => {
    await stage.openGateway();
    await stage.startApi();
  },
  begin: async (stage) => {
    for (let count = 0; count < 3; count++) await stage.askLater();
  },
  end: async (stage) => {
    await stage.startWorker();
  },
};

const lateWorker: Drill = {
  fault: 'the only worker hangs for seven seconds under forty streams',
  alerts: [
    'SluiceQueueWaitBurnFast',
    'SluiceQueueWaitBurnSlow',
    'SluiceFirstTokenBurnFast',
    'SluiceFirstTokenBurnSlow',
  ],
  open: async (stage) => {
    await stage.openGateway();
    await stage.startApi();
    const { child } = await stage.startWorker();
    opened.set(stage, { pause: () => child.kill('SIGSTOP'), resume: () => child.kill('SIGCONT') });
    await stage.ask(streamed('Hi'));
  },
  begin: async (stage) => {
    opened.get(stage)?.pause();
    const asked = Array.from({ length: 40 }, () => stage.ask(streamed('Hi')));
    await delay(7000);
    opened.get(stage)?.resume();
    await Promise.all(asked);
  },
};

const fullWorkers: Drill = {
  fault: 'all slots of the workers are in use',
  alerts: ['SluiceWorkersFull'],
  open: async (stage) => {
    await stage.openGateway({ settings: { WORKER_CONCURRENCY_CHAT: '2' } });
    await stage.startApi();
    await stage.startWorker();
  },
  begin: async (stage) => {
    for (let count = 0; count < 2; count++) await stage.askLater(longText);
  },
  end: (stage) => stage.cancelJobs(),
};

const fullQueue: Drill = {
  fault: 'the queue is full, and five requests a second are refused',
  alerts: ['SluiceRefusing'],
  open: async (stage) => {
    await stage.openGateway({ settings: { SLUICE_QUEUE_LIMIT: '2', WORKER_CONCURRENCY_CHAT: '1' } });
    await stage.startApi();
    await stage.startWorker();
  },
  begin: async (stage) => {
    stage.repeat(5, () => stage.askLater(longText));
  },
  end: (stage) => stage.cancelJobs(),
};

const vendors = new WeakMap<Stage, readonly FixtureVendor[]>();
const completion = {
  ...{ id: 'c', object: 'chat.completion', created: 1, model: 'm' },
  choices: [{ index: 0, message: { role: 'assistant', content: 'Hi' }, finish_reason: 'stop' }],
  usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 },
};

async function openVendors(stage: Stage): Promise<void> {
  const [broken, locked] = await Promise.all([startFixtureVendor(), startFixtureVendor()]);
  vendors.set(stage, [broken, locked]);
  for (const vendor of [broken, locked]) stage.use(() => vendor.close());
  broken.answer((response) => sendJson(response, 500, errorBody('no', 'overloaded')));
  locked.answer((response) => sendJson(response, 401, errorBody('no', 'invalid_api_key')));
  const like = { like: 'openai', api_key: 'a-key' } as const;
  await stage.openGateway({
    configuration: {
      vendors: {
        broken: { ...like, base_url: broken.baseUrl },
        locked: { ...like, base_url: locked.baseUrl },
      },
      models: {
        broken: { capability: 'chat', routes: [{ vendor: 'broken', model: 'm' }] },
        locked: { capability: 'chat', routes: [{ vendor: 'locked', model: 'm' }] },
      },
    },
  });
  await stage.startApi();
  await stage.startWorker();
}

const failingVendors: Drill = {
  fault: 'a vendor fails, and another refuses its key',
  alerts: [
    ...['SluiceVendorFailing', 'SluiceRouteOpen', 'SluiceVendorKeyRefused'],
    ...['SluiceAvailabilityBurnFast', 'SluiceAvailabilityBurnSlow'],
  ],
  open: openVendors,
  begin: async (stage) => {
    for (const model of ['broken', 'locked']) stage.repeat(2, () => stage.ask(held('Hi', { model })));
  },
  end: async (stage) => {
    for (const vendor of vendors.get(stage) ?? [])
      vendor.answer((response) => sendJson(response, 200, JSON.stringify(completion)));
    for (const model of ['broken', 'locked']) stage.repeat(2, () => stage.ask(held('Hi', { model })));
  },
};

const lostJobs: Drill = {
  fault: 'Redis is emptied under accepted jobs',
  alerts: ['SluiceJobsLost'],
  open: async (stage) => {
    await stage.openGateway({ settings: { WORKER_CONCURRENCY_CHAT: '1' } });
    await stage.startApi();
    await stage.startWorker();
    for (let count = 0; count < 3; count++) await stage.askLater(longText);
  },
  begin: async (stage) => {
    await stage.redis().flushall();
  },
};

const killedWorker: Drill = {
  fault: 'a worker is killed in the middle of eight streams',
  alerts: ['SluiceJobsAbandoned'],
  open: async (stage) => {
    await stage.openGateway();
    await stage.startApi();
    await stage.startWorker();
  },
  begin: async (stage) => {
    const asked = Array.from({ length: 8 }, () => stage.ask(streamed(longText)));
    await Promise.all(asked);
    const [worker] = stage.gateway.workers;
    await eventually(async () => {
      if ((await stage.redis().keys('sluice:*:log:*')).length < 8) throw new Error('not all have begun');
    });
    await worker?.kill();
  },
  end: async (stage) => {
    await stage.startWorker();
  },
};

/** Faults of queues, workers and vendors. */
export const workDrills: readonly Drill[] = [
  withoutWorkers,
  lateWorker,
  fullWorkers,
  fullQueue,
  failingVendors,
  lostJobs,
  killedWorker,
];
