/**
 * The URL to start a worker thread from, for a module named without its extension. Compiled threads lie beside compiled code;
 * the tests run TypeScript, which Node does itself since 22.18. Node 20 passes its loader to a thread only if the thread's own code
 * requests it.
 * @param name the thread's module relative to `base`: `./large-body-thread`.
 * @param base the `import.meta.url` of the module that starts the thread.
 */
export function threadFile(name: string, base: string): URL {
  if (base.endsWith('.js')) return new URL(`${name}.js`, base);
  const thread = new URL(`${name}.ts`, base);
  if ('typescript' in process.features && process.features.typescript) return thread;
  const loader = JSON.stringify(import.meta.resolve('tsx/esm/api'));
  const source = `import { register } from ${loader}; register(); await import(${JSON.stringify(thread.href)});`;
  return new URL(`data:text/javascript,${encodeURIComponent(source)}`);
}

/**
 * Limits of a thread that parses what callers have sent. They are for defects alone, as V8 can end the whole process when a thread
 * has no memory left to end with: by the maximum of values (see parse-json.ts), no body of 20 MiB takes half of it.
 */
export const threadLimits = { maxOldGenerationSizeMb: 2048 };
