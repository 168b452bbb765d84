/** A statement's parameter without NUL: Postgres refuses such a text, and libsql ends it there. */
export function storableParameter(parameter: unknown): unknown {
  return typeof parameter === 'string' && parameter.includes('\0') ? parameter.replaceAll('\0', '\ufffd') : parameter;
}
