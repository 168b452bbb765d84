/**
 * Settings for apis of suites that sign in by the hundred: their hashes of passwords take a sixteenth of the time. What is told of
 * a password, and how often one may be tried, does not hang on that; other suites have hashes as operators do.
 */
export const quickPasswords = {
  NODE_OPTIONS: `--import=${new URL('./quick-scrypt.mjs', import.meta.url).href}`,
};
