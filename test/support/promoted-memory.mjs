// Loaded before a process of the gateway: gives it the flags of package.json's `api`, and sends, when asked, how many bytes V8 has
// moved among its old objects since the time before.
import { readFileSync } from 'node:fs';
import { getHeapSpaceStatistics, setFlagsFromString } from 'node:v8';

const { scripts } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8'));
for (const flag of scripts.api.match(/--\S+/g)) setFlagsFromString(flag);

const oldBytes = () => getHeapSpaceStatistics().find(({ space_name: name }) => name === 'old_space').space_used_size;

let before = oldBytes();
let promoted = 0;

/** More often than full collections come, which make them fewer. */
const everyMs = 20;
setInterval(look, everyMs).unref();

function look() {
  const now = oldBytes();
  promoted += Math.max(0, now - before);
  before = now;
}

process.on('message', (message) => {
  if (message?.type !== 'take_promoted') return;
  look();
  process.send({ type: 'promoted', bytes: promoted });
  promoted = 0;
});
// The parent's questions keep no process alive.
process.channel?.unref();
