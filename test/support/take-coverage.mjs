// Loaded before a process of the gateway: counts the calls of its functions, and sends, when asked, those since the time before.
import { Session } from 'node:inspector/promises';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('../../', import.meta.url));
const source = /^(?:api|workers|shared)\/(?!.*node_modules)/;
const session = new Session();
session.connect();
await session.post('Profiler.enable');
await session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: true });

/** The functions that ran, or ran on after a wait, since the last call: their names with their offsets, by file. */
async function takeCoverage() {
  const { result } = await session.post('Profiler.takePreciseCoverage');
  const byFile = {};
  for (const { url, functions } of result) {
    if (!url.startsWith('file:')) continue;
    const path = fileURLToPath(url).slice(root.length);
    if (!fileURLToPath(url).startsWith(root) || !source.test(path)) continue;
    const run = functions.filter(({ ranges, functionName }) => {
      const isModule = functionName === '' && ranges[0].startOffset === 0;
      return !isModule && ranges.some(({ count }) => count > 0);
    });
    if (run.length > 0)
      byFile[path] = run.map(({ functionName, ranges }) => `${functionName}@${ranges[0].startOffset}`);
  }
  return byFile;
}

process.on('message', async (message) => {
  if (message?.type === 'take_coverage') process.send({ type: 'coverage', files: await takeCoverage() });
});
// The parent's questions keep no process alive.
process.channel?.unref();
