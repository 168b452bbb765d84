import { closeSync, fstatSync, openSync } from 'node:fs';
import { childEnvironment, readConfig } from '../shared/config/config.ts';
import { readConfigAside } from '../shared/config/read-config-aside.ts';
import { startFailure } from '../shared/config/start-failure.ts';
import { onNpmShellGone } from '../shared/runtime/npm-shell.ts';
import { keepFilesPrivate } from '../shared/runtime/private-files.ts';
import { oneAfterAnother } from '../shared/runtime/reload.ts';
import type { Programs } from './gateway-programs.ts';
import { Launch } from './launch.ts';
import { StartError } from './supervised-child.ts';
import { type Welcome, welcomeText, withoutSecrets } from './welcome.ts';

/** Under some versions of npm one Ctrl-C arrives twice at once, from the terminal and from npm. */
const sameSignalMs = 1000;
/**
 * How it stops unless the settings say otherwise. Another process that could take over is not expected, so nobody has to be
 * told in advance; and while it finishes what runs, new requests are refused, so it must not take long.
 */
const ownDefaults = { SLUICE_LAME_DUCK_SECONDS: '0', SLUICE_SHUTDOWN_SECONDS: '30' };
/** What a shell makes of a SIGTERM. */
const endedBySignal = 143;
/** Without Redis no request can finish, so a longer wait is useless. */
const redisLostLimitMs = 3000;

/**
 * Starts everything with the settings of the environment, prints usage information, and ends this process on request or when
 * an essential part fails: with one sentence on stderr and exit code 1.
 * @param onStarted called when everything runs
 */
export async function runLauncher(
  programs: Programs,
  onStarted?: (launch: Launch, welcome: Welcome) => void,
): Promise<void> {
  keepFilesPrivate();
  try {
    const launch = new Launch({
      config: readConfig(undefined, ownDefaults),
      programs,
      warn: (sentence) => console.error(sentence),
    });
    const stop = stopper(launch);
    const stopGently = () => stop('Stopping: running requests are finished first; Ctrl-C again stops at once.', 0);
    for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, stopGently);
    const hadTerminal = hasTerminal();
    const reloadNext = oneAfterAnother(() => reload(launch));
    process.on('SIGHUP', () => {
      if (hadTerminal && !hasTerminal()) stopGently();
      else reloadNext();
    });
    process.on('disconnect', () => stop('Stopping: the parent process is gone.', 0));
    onNpmShellGone(() => stop('Stopping: npm was ended.', endedBySignal));
    try {
      const welcome = await launch.start(() =>
        stop('Redis ended unexpectedly, so everything stops.', 1, redisLostLimitMs),
      );
      console.log(welcomeText(isJournal() ? withoutSecrets(welcome) : welcome));
      onStarted?.(launch, welcome);
    } catch (error) {
      stop(sentenceOf(error), 1);
    }
  } catch (error) {
    console.error(sentenceOf(error));
    process.exit(1);
  }
}

/** Makes everything reload the configuration file, unless it is invalid. */
async function reload(launch: Launch): Promise<void> {
  try {
    launch.reload(await readConfigAside(ownDefaults));
    console.error('The configuration file is read again; all other settings stay until a restart.');
  } catch (error) {
    console.error(`The settings stay as they were. ${sentenceOf(error)}`);
  }
}

/** Whether systemd's journal keeps what is printed: it names its stream, which other programs may inherit the name of. */
function isJournal(): boolean {
  const { dev, ino } = fstatSync(1);
  return childEnvironment({}).JOURNAL_STREAM === `${dev}:${ino}`;
}

/** Closing a terminal also sends SIGHUP, and then this returns false. */
function hasTerminal(): boolean {
  try {
    closeSync(openSync('/dev/tty', 'r'));
    return true;
  } catch {
    return false;
  }
}

/** Stops everything and then the process; the first reason counts. A second request ends it at once. */
function stopper(launch: Launch): (sentence: string, exitCode: number, limitMs?: number) => void {
  let stoppingSince: number | undefined;
  return (sentence, exitCode, limitMs) => {
    if (stoppingSince !== undefined) {
      // Only a signal requests it twice; the children are killed on exit.
      if (exitCode === 0 && Date.now() - stoppingSince > sameSignalMs) process.exit(1);
      return;
    }
    stoppingSince = Date.now();
    console.error(sentence);
    void launch.close(limitMs).then(() => process.exit(exitCode));
  };
}

function sentenceOf(error: unknown): string {
  return error instanceof StartError ? error.message : startFailure(error);
}
