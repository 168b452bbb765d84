// Fragments that are prepended to scripts of the queue, beside which they lie.

/** The script fragment that enqueues jobs. */
export const addJobScript = new URL('./add-job.lua', import.meta.url);
/** The script fragments that keep the queue fair between accounts, and between an account's keys. */
export const linesScripts = [new URL('./keys-in-line.lua', import.meta.url), new URL('./lines.lua', import.meta.url)];
/** The script fragment for jobs of high priority; preceded by `linesScripts`. */
export const highLaneScript = new URL('./high-lane.lua', import.meta.url);
/** The script fragments that know every lane of the queue. */
export const laneScripts = [...linesScripts, new URL('./flex-lane.lua', import.meta.url), highLaneScript];
