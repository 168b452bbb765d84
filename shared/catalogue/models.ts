import { readFileSync } from 'node:fs';
import type { Model } from './model.ts';
import { freeSandboxModels, sandboxModels } from './sandbox-models.ts';

export type { Model, ModelRoute } from './model.ts';

/**
 * Reads the generated file. `npm run catalogue`, which creates it (catalogue/generate.ts), and its test check each row: to do so
 * once more would be a tenth of every process's start.
 */
function readModels(): readonly Model[] {
  return (JSON.parse(readFileSync(new URL('./models.json', import.meta.url), 'utf8')) as { models: Model[] }).models;
}

const vendorModels = readModels();

/** Every model the gateway knows, those of the sandbox with their prices. */
export const models: readonly Model[] = [...vendorModels, ...sandboxModels];

/** The same with a sandbox that is free of charge. */
export const modelsWithFreeSandbox: readonly Model[] = [...vendorModels, ...freeSandboxModels];
