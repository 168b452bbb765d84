import { childEnvironment } from '../config/config.ts';

/** How often it is looked at, in ms. */
const everyMs = 500;

/**
 * Calls `stop` once when the shell is gone in which npm has started this process, as `npm run api` does. npm passes a signal to that
 * shell alone, and some (Debian's) end without a word to what they run, which would stay and keep its port.
 */
export function onNpmShellGone(stop: () => void): void {
  const { npm_lifecycle_event: script, npm_package_name: ofPackage } = childEnvironment({});
  // What has a channel is a child of Sluice's own, which ends with that. Scripts of other packages may start Sluice and go.
  if (script === undefined || ofPackage !== 'sluice' || process.channel !== undefined) return;
  const shell = process.ppid;
  const timer = setInterval(() => {
    if (process.ppid === shell) return;
    clearInterval(timer);
    stop();
  }, everyMs);
  timer.unref();
}
