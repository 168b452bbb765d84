import { readFileSync } from 'node:fs';
import { catalogueFile, type Model } from './model.ts';
import { sandboxModels } from './sandbox-models.ts';

export type { Model, ModelRoute } from './model.ts';

/** Reads the generated file: `npm run catalogue` makes it (catalogue/generate.ts). @throws Error for a row of another shape. */
function readModels(): readonly Model[] {
  return catalogueFile.parse(JSON.parse(readFileSync(new URL('./models.json', import.meta.url), 'utf8'))).models;
}

/** Every model the gateway knows. */
export const models: readonly Model[] = [...readModels(), ...sandboxModels];
