import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { unpack } from './sources.ts';

const cost = { input: z.number(), output: z.number(), cacheRead: z.number(), cacheWrite: z.number() };

const listed = z.object({
  id: z.string(),
  reasoning: z.boolean(),
  input: z.array(z.enum(['text', 'image'])),
  cost: z.object({
    ...cost,
    tiers: z.array(z.object({ ...cost, inputTokensAbove: z.int() })).optional(),
  }),
  contextWindow: z.int(),
  maxTokens: z.int(),
});

/** A chat model as listed by pi-ai; prices are dollars per million tokens, and 0 if unknown. */
export type PiAiModel = z.infer<typeof listed>;

function readList(file: string): unknown {
  return JSON.parse(readFileSync(join(unpack('@earendil-works/pi-ai'), 'dist', 'providers', 'data', file), 'utf8'));
}

/** The chat models of one of pi-ai's vendors, in its order. */
export function readPiAi(vendor: string): PiAiModel[] {
  const byWire = z.record(z.string(), z.record(z.string(), z.unknown())).parse(readList(`${vendor}.json`));
  return Object.values(byWire)
    .flatMap((models) => Object.entries(models))
    .filter(([name]) => name.startsWith('chat:'))
    .map(([, model]) => listed.parse(model));
}

/** The day pi-ai's lists were generated, `YYYY-MM-DD`. */
export function piAiDate(): string {
  return z.object({ generatedAt: z.iso.datetime() }).parse(readList('.manifest.json')).generatedAt.slice(0, 10);
}
