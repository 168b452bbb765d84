import { readFileSync } from 'node:fs';
import { z } from 'zod';

const modality = z.enum(['text', 'image', 'audio', 'video', 'pdf']);

/** What models.dev says of a model at a vendor. Dates are `YYYY`, `YYYY-MM` or `YYYY-MM-DD`; prices are dollars a million tokens. */
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

/** What models.dev says of one model at one vendor. */
export type ModelsDevFact = z.infer<typeof fact>;

/** The extract's file: facts by `<vendor there>/<model>`, and which state of the repository they are from. */
export const modelsDevFile = z.strictObject({
  repository: z.string(),
  commit: z.string().regex(/^[0-9a-f]{40}$/),
  date: z.iso.date(),
  models: z.record(z.string(), fact),
});

/** Where the extract lies. */
export const modelsDevPath = new URL('./models-dev.json', import.meta.url);

/** Reads the extract (see extract-models-dev.ts). */
export function readModelsDev(): z.infer<typeof modelsDevFile> {
  return modelsDevFile.parse(JSON.parse(readFileSync(modelsDevPath, 'utf8')));
}
