/** The code of an error of the system, a database or a library, such as `ENOENT`; undefined for anything without one. */
export function codeOf(error: unknown): string | undefined {
  const { code } = (error ?? {}) as { readonly code?: unknown };
  return typeof code === 'string' ? code : undefined;
}
