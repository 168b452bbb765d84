import { statSync } from 'node:fs';
import { codeOf } from '../runtime/error-code.ts';
import { ConfigError } from './config-error.ts';

const reasons: Readonly<Record<string, string>> = {
  ENOENT: 'it cannot be made',
  EACCES: 'it may not be used by this user',
  EPERM: 'it may not be used by this user',
  EROFS: 'the file system is read-only',
  ENOTDIR: 'it, or a part of its path, is a file',
  EEXIST: 'a file is in its place',
  EISDIR: 'it is a folder',
  ENOSPC: 'the disk is full',
  EDQUOT: 'the disk quota is used up',
  EIO: 'the disk fails',
};

/** Why a file or folder cannot be used, as a part of a sentence. */
export function fileReason(error: unknown): string {
  return reasons[codeOf(error) ?? ''] ?? (error instanceof Error ? error.message : String(error));
}

/** An error of SQLite, from this thread or another. */
export interface SqliteFailure {
  readonly name: string;
  readonly code?: string | undefined;
  readonly message: string;
}

/** Why an SQLite file cannot be used, as a part of a sentence. */
export function sqliteReason({ code, message }: SqliteFailure): string {
  if (/^ConnectionFailed.*: 14"\)$/.test(message)) return 'it cannot be opened';
  if (code === undefined) return message.replace(/^ConnectionFailed\("(.*)"\)$/, '$1');
  if (code.startsWith('SQLITE_BUSY')) return 'another process keeps it locked';
  if (code.startsWith('SQLITE_READONLY')) return 'it may not be written to';
  if (code.startsWith('SQLITE_FULL')) return 'the disk is full';
  if (code === 'SQLITE_NOTADB') return 'it is not an SQLite file';
  return message;
}

/** The error for a file or folder that cannot be used; those of reading and writing do not name it themselves. */
export function unusableFile(path: string, error: unknown): ConfigError {
  return new ConfigError(`${path} cannot be used: ${fileReason(error)}.`, { cause: error });
}

/**
 * Whether there is a file or folder. One that this user may not look for is not missing.
 * @throws ConfigError when nobody can tell
 */
export function isThere(path: string): boolean {
  try {
    statSync(path);
    return true;
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return false;
    throw unusableFile(path, error);
  }
}

/** What a program that cannot start or go on prints: a sentence if the operator can do something about it, else where it failed. */
export function startFailure(error: unknown): string {
  if (error instanceof ConfigError) return error.message;
  const { path, syscall, stack, name, message } = error as NodeJS.ErrnoException;
  // An error of the file system, such as of a file in the data folder.
  if (typeof path === 'string' && syscall !== undefined && syscall !== 'connect') {
    return unusableFile(path, error).message;
  }
  // At the start no statement can be wrong: what fails is the disk or the server.
  if (name === 'SqliteError') return `The database cannot be used: ${sqliteReason(error as SqliteFailure)}.`;
  if (name === 'PostgresError') return `The database of DATABASE_URL cannot be used: ${message}.`;
  return stack ?? String(error);
}

/**
 * Refuses a command line of a program that takes none: an option would silently do nothing.
 * @throws ConfigError
 */
export function refuseArguments([argument]: readonly string[], command: string): void {
  if (argument === undefined) return;
  throw new ConfigError(`${command} takes no argument "${argument}": settings are environment variables.`);
}
