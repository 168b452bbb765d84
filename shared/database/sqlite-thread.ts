/** The thread that runs SQLite: libsql blocks while it works, and here it blocks no stream. Started by sqlite-dialect.ts. */
import { parentPort, workerData } from 'node:worker_threads';
import type Libsql from 'libsql';
import { readMigrations } from './migrations.ts';
import { openSqliteFile, reopenSqliteFile } from './sqlite-file.ts';

/** From the dialect to the thread. */
export type ThreadRequest =
  | { readonly type: 'execute'; readonly sql: string; readonly parameters: readonly unknown[] }
  | { readonly type: 'close' };

/** From the thread to the dialect: `ready` or `failed` once for the file, then one reply per statement, in order. */
export type ThreadReply =
  | { readonly type: 'ready' }
  | { readonly type: 'failed'; readonly error: ThreadError }
  | { readonly type: 'result'; readonly rows: unknown[]; readonly changes?: number }
  | { readonly type: 'error'; readonly error: ThreadError };

/** What the thread is started with. */
export interface ThreadData {
  readonly path: string;
  /** Whether a file that lacks migrations is refused. */
  readonly isMigrationOff: boolean;
}

export interface ThreadError {
  readonly message: string;
  /** SQLite's error code, such as `SQLITE_CONSTRAINT_UNIQUE`. */
  readonly code: string | undefined;
}

if (parentPort === null) throw new Error('this file runs as a thread only');
const port = parentPort;
const post = (reply: ThreadReply): void => port.postMessage(reply);

function errorOf(error: unknown): ThreadError {
  const { message, code } = error as { message?: unknown; code?: unknown };
  return { message: String(message ?? error), code: typeof code === 'string' && code !== '' ? code : undefined };
}

/** The statements around transactions, which are run without being prepared. */
const transactionStatements = ['begin immediate', 'commit', 'rollback'];

function execute(
  file: Libsql.Database,
  sql: string,
  parameters: readonly unknown[],
): Omit<ThreadReply & { type: 'result' }, 'type'> {
  // Some errors, such as a full disk, make SQLite roll back by itself: another rollback would fail, and its error hide the first.
  if (sql === 'rollback' && !file.inTransaction) return { rows: [] };
  if (transactionStatements.includes(sql)) {
    file.exec(sql);
    return { rows: [] };
  }
  const statement = file.prepare(sql);
  if (statement.reader) return { rows: statement.all(parameters) };
  return { rows: [], changes: statement.run(parameters).changes };
}

/**
 * Whether a statement is left that counts as running, beside which no transaction commits: libsql does not reset a prepared one
 * that has waited for another process's lock in vain.
 */
function leavesStatement({ sql }: ThreadRequest & { type: 'execute' }, { code }: ThreadError): boolean {
  return code?.startsWith('SQLITE_BUSY') === true && !transactionStatements.includes(sql);
}

function serve(opened: Libsql.Database, path: string): void {
  let file = opened;
  let mustReopen = false;
  port.on('message', (request: ThreadRequest) => {
    if (request.type === 'close') {
      file.close();
      port.close();
      return;
    }
    try {
      if (mustReopen && !file.inTransaction) {
        const reopened = reopenSqliteFile(path);
        file.close();
        file = reopened;
        mustReopen = false;
      }
      post({ type: 'result', ...execute(file, request.sql, request.parameters) });
    } catch (thrown) {
      const error = errorOf(thrown);
      mustReopen ||= leavesStatement(request, error);
      post({ type: 'error', error });
    }
  });
  post({ type: 'ready' });
}

try {
  const { path, isMigrationOff } = workerData as ThreadData;
  serve(openSqliteFile(path, readMigrations('sqlite'), isMigrationOff), path);
} catch (error) {
  post({ type: 'failed', error: errorOf(error) });
}
