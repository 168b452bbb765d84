import { readFileSync } from 'node:fs';
import { z } from 'zod';

const modality = z.enum(['text', 'image', 'audio', 'video', 'pdf']);

/** Facts of models.dev about a model at a vendor. Dates are `YYYY`, `YYYY-MM` or `YYYY-MM-DD`; prices are dollars per million tokens. */
const fact = z.strictObject({
  released: z.string().optional(),
  deprecated: z.literal(true).optional(),
  reasoning: z.boolean().optional(),
  input: z.array(modality).optional(),
  output: z.array(modality).optional(),
  context: z.int().optional(),
  most: z.int().optional(),
  cost: z
    .strictObject({
      input: z.number(),
      output: z.number(),
      cached: z.number().optional(),
      write: z.number().optional(),
    })
    .optional(),
});

/** Facts of models.dev about one model at one vendor. */
export type ModelsDevFact = z.infer<typeof fact>;

/** The extract's file: facts by `<vendor there>/<model>`, and the state of the repository they are from. */
export const modelsDevFile = z.strictObject({
  repository: z.string(),
  commit: z.string().regex(/^[0-9a-f]{40}$/),
  date: z.iso.date(),
  models: z.record(z.string(), fact),
});

/** Location of the extract. */
export const modelsDevPath = new URL('./models-dev.json', import.meta.url);

/** Reads the extract (see extract-models-dev.ts). */
export function readModelsDev(): z.infer<typeof modelsDevFile> {
  return modelsDevFile.parse(JSON.parse(readFileSync(modelsDevPath, 'utf8')));
}
