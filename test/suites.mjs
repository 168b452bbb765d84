// Which suites of test/run.mjs run where, and when: by how their paths in test/ begin.
import { mainVersion, otherVersions } from './node-versions/find-node.mjs';

/** Suites about what the database does. */
export const databaseSuites = [
  ...[
    'database/api-keys',
    'integration/ledger/ledger',
    'integration/ledger/raise-to-ledger',
    'integration/ledger/usage-hours',
  ],
  ...['faults/refused-records', 'faults/lost-jobs', 'integration/ledger/resources', 'console/jobs-and-usage'],
  ...['integration/jobs/job-records', 'integration/jobs/idempotency', 'integration/jobs/jobs'],
  'integration/responses/responses-stored',
];

/** Suites about what workers and apis share through Redis and that know no single server, for a Cluster of three nodes. */
export const clusterSuites = [
  ...['faults/vendor-capacity', 'integration/chat/answer-cache', 'integration/chat/cache-affinity'],
  ...['integration/jobs/client-retries', 'integration/jobs/single-flight', 'integration/jobs/low-priority'],
  'integration/pacing/vendor-limits',
];

/**
 * Those of `unit/` about what Node itself does: bodies, threads, files, signals, how deep its parser goes. The others compute; that
 * they call nothing the oldest version lacks is seen by the types, which are its own.
 */
const nodeUnits = [
  ...['api/bounds', 'api/http', 'api/replies', 'api/pipeline/hostile-requests', 'api/pipeline/large-bodies'],
  ...[
    'shared/blobs',
    'shared/config',
    'shared/redis',
    'shared/runtime',
    'shared/tracing',
    'workers/http',
    'workers/run',
  ],
].map((name) => `unit/${name}`);

/** Suites that depend on Node itself, with every kind of stream. Redis in memory, too, whose package promises less. */
const nodeSuites = [
  ...(process.env.SLUICE_SOAK ? ['unit/'] : nodeUnits),
  ...['faults/whole-streams', 'launcher/in-memory-redis'],
  ...['chat', 'broken-streams', 'cancellation'].map((name) => `integration/chat/${name}.test`),
  ...['integration/http/drain', 'integration/http/large-forms', 'integration/http/large-request-bodies'],
  ...['integration/responses/response-socket.test', 'integration/images/images.test'],
  ...['integration/audio/speech.test', 'integration/audio/transcriptions.test'],
  ...['integration/jobs/job-socket.test', 'integration/jobs/job-socket-handshake'],
  // What they do with slow readers and broken connections takes as long as half of those above; what the others do is hardly Node's.
  ...(process.env.SLUICE_SOAK
    ? [
        ...[
          'integration/responses/',
          'integration/audio/speech',
          'integration/jobs/job-socket',
          'integration/jobs/jobs.test',
        ],
        ...['integration/chat/completions.test', 'integration/messages/messages.test', 'integration/jobs/idempotency'],
      ]
    : []),
];

/** Of a version that is yet to become the one that counts: streams. */
const newestSuites = ['faults/whole-streams', 'unit/api/replies/incomplete-answers'];

/**
 * Of versions between the oldest and the one that counts: one suite of each kind of body. What is missing, or is other, in them is so
 * in the oldest.
 */
const betweenSuites = [
  ...[
    'faults/whole-streams',
    'integration/chat/chat.test',
    'integration/chat/cancellation',
    'launcher/in-memory-redis',
  ],
  ...['integration/http/large-request-bodies', 'integration/audio/transcriptions.test'],
  'integration/responses/response-socket.test',
];

/** The suites for one of the versions of Node other than the one that counts. The soak has all of them for each that is older. */
export function suitesOf(version) {
  if (version > mainVersion) return newestSuites;
  return version === otherVersions[0] || process.env.SLUICE_SOAK ? nodeSuites : betweenSuites;
}

/** Those of `unit/` that take seconds, by work or by waiting, the longest first: dealt before all others, so that no process has more of them than the next. */
export const longSuites = [
  ...['api/pipeline/hostile-requests', 'shared/runtime/shutdown', 'api/pipeline/large-bodies', 'api/bounds/busy-loop'],
  ...['shared/runtime/log', 'api/bounds/connections', 'workers/run/job-run', 'api/http/form-body'],
  ...['api/endpoints/response-view', 'shared/blobs/blobs', 'workers/usage/token-counter', 'api/pipeline/hold-of'],
  ...['api/pipeline/request-extent', 'api/replies/bounded-answers'],
].map((name) => `unit/${name}`);

/**
 * Those that take half a minute or more, most of it waiting. They begin before the others, which would wait for those of them that
 * begin last, and two at a time beside them.
 */
export const slowSuites = [
  ...['integration/accounts/usage-of-cut-answers', 'faults/video-faults', 'launcher/launcher', 'clients/python'],
  ...['integration/responses/response-socket-limits', 'integration/chat/unread-answers', 'deploy/rules-and-dashboards'],
  ...['console/accounts', 'console/passwords', 'integration/jobs/single-flight', 'integration/pacing/vendor-limits'],
  ...['faults/faults.test', 'faults/stored-responses'],
];
