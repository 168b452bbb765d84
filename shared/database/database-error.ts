/** Prefixes of SQLite error codes about the file, its disk or its locks; all other codes are about the statement. */
const sqliteAway =
  /^SQLITE_(BUSY|LOCKED|FULL|IOERR|CANTOPEN|READONLY|NOMEM|INTERRUPT|PROTOCOL|CORRUPT|NOTADB|PERM|AUTH|NOLFS)/;
/** SQLite error codes of a write that its disk or file does not take, while it can be read. */
const sqliteReadOnly = /^SQLITE_(FULL|READONLY|IOERR)/;
/** SQLSTATE of a write that Postgres refuses because it takes none: it is a standby, or its administrator or service has said so. */
const readOnlyCode = '25006';
/** SQLSTATE classes and system errors of a server that cannot be reached, is closing or read-only, or has no resources left. */
const postgresUnreachable = /^(08|53|57|25006|25P0[23]|ECONN|ENOTFOUND|EAI_|EHOST|ENET|ETIMEDOUT|EPIPE|ENOENT)/;
/** Messages of Postgres's client library for a silent or broken connection, which has no code. */
const connectionLost = /timeout|terminated/i;
/** SQLSTATE classes for values and rows that Postgres rejects: data, cardinality, constraints, limits of a row or an index. */
const postgresRefused = /^(21|22|23|54|42804)/;

/** Whether a write failed because the database takes none, while it can be read. */
export function isReadOnly(error: unknown): boolean {
  const { name, code } = error as { name?: unknown; code?: unknown };
  if (typeof code !== 'string') return false;
  return name === 'SqliteError' ? sqliteReadOnly.test(code) : code === readOnlyCode;
}

/**
 * Whether a statement failed because of the database (unreachable, locked, full, read-only) rather than the data to be written:
 * then the same statement may succeed later, and no other one can now. False means only that the error looks otherwise.
 */
export function isDatabaseAway(error: unknown): boolean {
  const { name, code } = error as { name?: unknown; code?: unknown };
  const known = typeof code === 'string' ? code : undefined;
  if (name === 'SqliteError') return known !== undefined && sqliteAway.test(known);
  return name === 'PostgresError' && !postgresRefused.test(known ?? '');
}

/** Whether a statement failed because the database cannot be used for now, and not because of the statement. */
export function isDatabaseUnreachable(error: unknown): boolean {
  const { name, code, message } = error as { name?: unknown; code?: unknown; message?: unknown };
  if (name === 'SqliteError') return typeof code === 'string' && sqliteAway.test(code);
  if (name !== 'PostgresError') return false;
  return typeof code === 'string' ? postgresUnreachable.test(code) : connectionLost.test(String(message));
}
