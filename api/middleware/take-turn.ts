/** Chunks of uploads that are handled in one turn of the event loop. */
const chunksPerTurn = 2;

const waiting: (() => void)[] = [];
let isScheduled = false;

/**
 * Calls back when it is the caller's turn: of all uploads together only a few chunks are handled per turn of the event loop,
 * first come, first served. A hundred uploads at a time would otherwise hold every other request up for a hundred chunks.
 */
export function takeTurn(turn: () => void): void {
  waiting.push(turn);
  if (isScheduled) return;
  isScheduled = true;
  setImmediate(run);
}

function run(): void {
  for (const turn of waiting.splice(0, chunksPerTurn)) turn();
  isScheduled = waiting.length > 0;
  if (isScheduled) setImmediate(run);
}
