import { setTimeout as delay } from 'node:timers/promises';
import { DatabaseLock } from '../support/database-lock.ts';
import type { SeededRandom } from '../support/seeded-random.ts';
import type { Deployment, Role } from './deployment.ts';
import type { FaultProxy, LinkState } from './fault-proxy.ts';
import { copyAnswers, restoreAnswers } from './rolled-back-answers.ts';

/** One fault that is about to happen. Two that need the same part follow each other. */
export interface Fault {
  readonly kind: FaultKind;
  /** The part that fails: `redis`, `database`, `blobs`, or a role's name. */
  readonly part: string;
  readonly ms: number;
  /** Begins it, and resolves when it is over. */
  run(): Promise<void>;
}

export const faultKinds = [
  ...['process_killed', 'process_frozen', 'clock_shifted'],
  ...['redis_link_cut', 'redis_requests_lost', 'redis_replies_lost', 'client_link_cut', 'client_replies_lost'],
  ...['redis_out_of_memory', 'redis_read_only', 'redis_without_replicas', 'redis_killed', 'redis_frozen'],
  ...['blobs_broken', 'disk_full', 'database_locked'],
] as const;

/** Kinds that come up only where they are asked for: they take long, or hit one step of the way alone. */
const specialKinds = [
  ...['worker_killed_before_settling', 'settlement_replies_lost'],
  ...['redis_refuses_for_long', 'database_locked_for_long', 'answers_rolled_back'],
] as const;

export type FaultKind = (typeof faultKinds)[number] | (typeof specialKinds)[number];

/** How often each kind comes up. Processes and Redis itself cost seconds each, connections next to nothing. */
const weights: Readonly<Record<FaultKind, number>> = {
  process_killed: 3,
  process_frozen: 4,
  clock_shifted: 2,
  redis_link_cut: 8,
  redis_requests_lost: 5,
  redis_replies_lost: 8,
  client_link_cut: 8,
  client_replies_lost: 4,
  redis_out_of_memory: 4,
  redis_read_only: 3,
  redis_without_replicas: 4,
  redis_killed: 1,
  redis_frozen: 3,
  blobs_broken: 4,
  disk_full: 3,
  database_locked: 3,
  worker_killed_before_settling: 1,
  settlement_replies_lost: 1,
  redis_refuses_for_long: 1,
  database_locked_for_long: 1,
  answers_rolled_back: 1,
};

const clockShiftMs = 11 * 60_000;

/** Draws a fault of the deployment. @param only kinds to choose from; left out: all */
export function drawFault(
  deployment: Deployment,
  random: SeededRandom,
  only: readonly FaultKind[] = faultKinds,
): Fault {
  const kind = random.weighted(only.map((name) => [weights[name], name] as const));
  const { apis, workers, roles } = deployment;
  const role = random.pick(kind.startsWith('client') ? apis : /^(worker|settlement)_/.test(kind) ? workers : roles);
  return { kind, ...allMakers[kind](deployment, role, random) };
}

type Maker = (deployment: Deployment, role: Role, random: SeededRandom) => Omit<Fault, 'kind'>;

const makers: Readonly<Record<(typeof faultKinds)[number], Maker>> = {
  process_killed: (_, role, random) => {
    const ms = random.int(0, 2000);
    return {
      ...{ part: role.name, ms },
      run: async () => {
        await role.kill();
        await delay(ms);
        await role.start();
      },
    };
  },
  process_frozen: (_, role, random) => {
    // Some for longer than locks and leases last.
    const ms = random.chance(0.25) ? random.int(11_000, 16_000) : random.int(100, 4000);
    return spell(
      role.name,
      ms,
      () => role.signal('SIGSTOP'),
      () => role.signal('SIGCONT'),
    );
  },
  clock_shifted: (_, role, random) => {
    const shift = random.chance(0.5) ? clockShiftMs : -clockShiftMs;
    return spell(
      role.name,
      random.int(1000, 8000),
      () => role.tell({ clockShiftMs: shift }),
      () => role.tell({ clockShiftMs: 0 }),
    );
  },
  redis_link_cut: (_, role, random) => linkFault(role, role.redisLink, 'cut', random.int(0, 3000)),
  redis_requests_lost: (_, role, random) => linkFault(role, role.redisLink, 'requests_lost', random.int(20, 1500)),
  redis_replies_lost: (_, role, random) => linkFault(role, role.redisLink, 'replies_lost', random.int(5, 1500)),
  client_link_cut: (_, role, random) => linkFault(role, clientLink(role), 'cut', random.int(0, 300)),
  client_replies_lost: (_, role, random) => linkFault(role, clientLink(role), 'replies_lost', random.int(5, 500)),
  redis_out_of_memory: ({ redis }, _, random) =>
    spell(
      'redis',
      random.int(300, 5000),
      () => redis.config('SET', 'maxmemory', '1mb'),
      () => redis.config('SET', 'maxmemory', '0'),
    ),
  redis_read_only: ({ redis }, _, random) =>
    spell(
      'redis',
      random.int(300, 5000),
      // Nobody listens there: it stays as it is, and takes no writes.
      () => redis.replicaof('127.0.0.1', 1),
      () => redis.replicaof('NO', 'ONE'),
    ),
  redis_without_replicas: ({ redis }, _, random) =>
    spell(
      'redis',
      random.int(300, 5000),
      () => redis.config('SET', 'min-replicas-to-write', '1'),
      () => redis.config('SET', 'min-replicas-to-write', '0'),
    ),
  redis_killed: ({ redisServer }, _, random) =>
    spell(
      'redis',
      random.int(100, 2000),
      () => redisServer.kill(),
      () => redisServer.restart(),
    ),
  redis_frozen: ({ redisServer }, _, random) =>
    spell(
      'redis',
      random.int(50, 3000),
      () => process.kill(redisServer.pid, 'SIGSTOP'),
      () => process.kill(redisServer.pid, 'SIGCONT'),
    ),
  blobs_broken: (deployment, _, random) =>
    spell(
      'blobs',
      random.int(300, 5000),
      () => deployment.breakBlobs(),
      () => deployment.restoreBlobs(),
    ),
  disk_full: (_, role, random) =>
    spell(
      role.name,
      random.int(300, 5000),
      () => role.tell({ isDiskFull: true }),
      () => role.tell({ isDiskFull: false }),
    ),
  database_locked: (deployment, _, random) =>
    random.chance(0.25) ? databaseLockedForLong(deployment, random) : databaseLocked(deployment, random.int(300, 5000)),
};

const specialMakers: Readonly<Record<(typeof specialKinds)[number], Maker>> = {
  worker_killed_before_settling: (_, role) => ({
    ...{ part: role.name, ms: 0 },
    run: async () => {
      await Promise.race([role.redisLink.lose('command', ':outbox'), delay(5000)]);
      // Its queue learns that the job is done, or another worker would get it, and settle it.
      await delay(200);
      await role.kill();
      role.redisLink.set('open');
      await role.start();
    },
  }),
  settlement_replies_lost: (_, role, random) => {
    const ms = random.int(5, 200);
    return {
      ...{ part: `link of ${role.name}`, ms },
      run: async () => {
        await Promise.race([role.redisLink.lose('replies', ':outbox'), delay(5000)]);
        await delay(ms);
        role.redisLink.set('open');
      },
    };
  },
  // For longer than anybody tries again.
  redis_refuses_for_long: ({ redis }, _, random) =>
    spell(
      'redis',
      random.int(16_500, 19_000),
      () => redis.config('SET', 'min-replicas-to-write', '1'),
      () => redis.config('SET', 'min-replicas-to-write', '0'),
    ),
  database_locked_for_long: (deployment, _, random) => databaseLockedForLong(deployment, random),
  answers_rolled_back: ({ redis }, _, random) => {
    const ms = random.int(50, 1500);
    return {
      ...{ part: 'redis', ms },
      run: async () => {
        const answers = await copyAnswers(redis);
        await delay(ms);
        await restoreAnswers(redis, answers);
      },
    };
  },
};

const allMakers: Readonly<Record<FaultKind, Maker>> = { ...makers, ...specialMakers };

function databaseLocked({ gateway }: Deployment, ms: number): Omit<Fault, 'kind'> {
  let lock: DatabaseLock | undefined;
  return spell(
    'database',
    ms,
    async () => {
      lock = await DatabaseLock.take(gateway.dataDir);
    },
    () => lock?.release(),
  );
}

/** For longer than a statement waits. */
function databaseLockedForLong(deployment: Deployment, random: SeededRandom): Omit<Fault, 'kind'> {
  return databaseLocked(deployment, random.int(6000, 11_000));
}

function spell(part: string, ms: number, begin: () => unknown, end: () => unknown): Omit<Fault, 'kind'> {
  return {
    ...{ part, ms },
    run: async () => {
      await begin();
      try {
        await delay(ms);
      } finally {
        await end();
      }
    },
  };
}

function linkFault(role: Role, link: FaultProxy, state: LinkState, ms: number): Omit<Fault, 'kind'> {
  return spell(
    `link of ${role.name}`,
    ms,
    () => link.set(state),
    () => link.set('open'),
  );
}

function clientLink({ name, clientLink: link }: Role): FaultProxy {
  if (link === undefined) throw new Error(`${name} has no clients`);
  return link;
}
