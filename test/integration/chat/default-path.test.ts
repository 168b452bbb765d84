import assert from 'node:assert/strict';
import { test } from 'node:test';
import { filesRunByStreamedChat } from '../../support/files-run.ts';

/** See docs/architecture.md: a reader of one request meets no more files than these, the spine included. */
const maxFiles = 70;

test('a streamed chat runs functions of no more source files than its path is allowed', async (t) => {
  const files = await filesRunByStreamedChat();
  t.diagnostic(`${files.length} files:\n${files.join('\n')}`);
  assert.ok(files.length <= maxFiles, `${files.length} files:\n${files.join('\n')}`);
  // A count without the path itself counts nothing.
  const spine = ['api/app.ts', 'api/pipeline/handle-request.ts', 'workers/run/run-job.ts', 'shared/jobs/append.ts'];
  for (const file of spine) assert.ok(files.includes(file), file);
});
