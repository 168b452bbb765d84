// Ends the process of a test file that does not end by itself: Node bounds the time of each test, but waits for the process of a
// file for ever, and prints nothing of the files behind it. Loaded into each of them by test/run.mjs.
import { after } from 'node:test';
import { isMainThread } from 'node:worker_threads';

const [, file] = process.argv;
const seconds = Number(process.env.SLUICE_TEST_FILE_SECONDS);

if (isMainThread && seconds > 0 && /\.test\.m?[jt]s$/.test(file ?? '')) {
  const end = () => {
    const open = process.getActiveResourcesInfo().join(', ');
    console.error(`${file} has not ended ${seconds} s after its start, and is ended. Open in it: ${open}`);
    process.exit(1);
  };
  setTimeout(end, seconds * 1000).unref();
  // Others wait for its place meanwhile.
  let testsEndedAt = Number.POSITIVE_INFINITY;
  after(() => {
    testsEndedAt = performance.now();
  });
  process.on('exit', () => {
    const stayed = Math.round((performance.now() - testsEndedAt) / 1000);
    if (stayed >= 3) console.error(`${file} stayed open for ${stayed} s after its last test.`);
  });
}
