import { readFileSync } from 'node:fs';
import { catalogueFile, type Model } from './model.ts';
import { freeSandboxModels, sandboxModels } from './sandbox-models.ts';

export type { Model, ModelRoute } from './model.ts';

/**
 * Reads the generated file, which `npm run catalogue` creates (catalogue/generate.ts).
 * @throws Error for a row of another shape.
 */
function readModels(): readonly Model[] {
  return catalogueFile.parse(JSON.parse(readFileSync(new URL('./models.json', import.meta.url), 'utf8'))).models;
}

const vendorModels = readModels();

/** Every model the gateway knows, those of the sandbox with their prices. */
export const models: readonly Model[] = [...vendorModels, ...sandboxModels];

/** The same with a sandbox that is free of charge. */
export const modelsWithFreeSandbox: readonly Model[] = [...vendorModels, ...freeSandboxModels];
