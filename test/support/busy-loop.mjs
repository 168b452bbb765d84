// Keeps the event loop of the process that imports it (NODE_OPTIONS=--import …) busy, from the message `busy` until `idle`: each
// turn of the loop then takes 300 ms of its processor.
let isBusy = false;

function work() {
  const until = performance.now() + 300;
  while (performance.now() < until);
  if (isBusy) setImmediate(work);
}

process.on('message', ({ type }) => {
  if (type === 'busy' && !isBusy) setImmediate(work);
  if (type === 'busy' || type === 'idle') isBusy = type === 'busy';
});
