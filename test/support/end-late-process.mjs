// Ends the process of a test file that does not end by itself: Node bounds the time of each test, but waits for the process of a
// file for ever, and prints nothing of the files behind it. Loaded into each of them by test/run.mjs.
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
}
