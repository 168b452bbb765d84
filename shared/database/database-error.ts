/** SQLite's names of what is wrong with the file, its disk or its locks, by how they begin; the rest is about the statement. */
const sqliteAway =
  /^SQLITE_(BUSY|LOCKED|FULL|IOERR|CANTOPEN|READONLY|NOMEM|INTERRUPT|PROTOCOL|CORRUPT|NOTADB|PERM|AUTH|NOLFS)/;
/** SQLSTATE classes of values and rows that Postgres refuses: data, cardinality, constraints, limits of a row or an index. */
const postgresRefused = /^(21|22|23|54|42804)/;

/**
 * Whether a statement failed because of the database (away, locked, full, read-only) and not because of what was to be
 * written: then the same statement may succeed later, and no other one can now. False says only that it looks otherwise.
 */
export function isDatabaseAway(error: unknown): boolean {
  const { name, code } = error as { name?: unknown; code?: unknown };
  const known = typeof code === 'string' ? code : undefined;
  if (name === 'SqliteError') return known !== undefined && sqliteAway.test(known);
  return name === 'PostgresError' && !postgresRefused.test(known ?? '');
}
