import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { z } from 'zod';
import { catalogueFile, type Model } from '../shared/catalogue/model.ts';
import { chatModels } from './chat-models.ts';
import type { MediaModel } from './media-model.ts';
import { mediaModels } from './media-models.ts';
import { readModelsDev } from './models-dev.ts';
import { openaiModels } from './openai-models.ts';
import { withShutdown } from './shutdowns.ts';
import { type SourceName, sources, unpack } from './sources.ts';
import { readTierPrices } from './tier-prices.ts';

/** The generated file as an object. */
export type CatalogueFile = z.infer<typeof catalogueFile>;

const texts = new Map<SourceName, string>();

function textOf(source: SourceName): string {
  const file = source === '@pydantic/genai-prices' ? 'index.js' : 'index.d.ts';
  const text = texts.get(source) ?? readFileSync(join(unpack(source), 'dist', file), 'utf8');
  texts.set(source, text);
  return text;
}

/**
 * Returns the row if its source still lists the model.
 * @throws Error if it no longer does.
 */
function stillNamed({ row, named }: MediaModel): Model {
  if (named === undefined) return row;
  const [source, name] = named;
  const text = textOf(source);
  if (text.includes(`'${name}'`) || text.includes(`"${name}"`)) return row;
  throw new Error(`${source} no longer names ${name}: is the model ${row.id} still offered?`);
}

/**
 * The catalogue without the sandbox's models: OpenAI's in the order of their table, then the others by vendor.
 * @param now is written to it; models shut down by then are marked as retired
 * @throws Error if two rows have the same id, or a source has changed unexpectedly
 */
export function buildCatalogue(now: Date): CatalogueFile {
  const models = [...openaiModels, ...chatModels(), ...mediaModels().map(stillNamed)].map((model) =>
    withShutdown(model, now),
  );
  const ids = new Set<string>();
  for (const { id } of models) {
    if (ids.has(id)) throw new Error(`Two rows have the id ${id}.`);
    ids.add(id);
  }
  const { repository, commit } = readModelsDev();
  const tierPrices = readTierPrices();
  return catalogueFile.parse({
    generated_at: now.toISOString(),
    sources: {
      ...Object.fromEntries(Object.entries(sources).map(([name, { version }]) => [name, version])),
      [repository]: commit,
      [tierPrices.source]: tierPrices.version,
    },
    models,
  });
}

/** The file's text: one line per model, so that a diff shows each change. */
export function catalogueText({ models, ...head }: CatalogueFile): string {
  const opening = JSON.stringify(head, null, 2).slice(0, -2);
  return `${opening},\n  "models": [\n${models.map((model) => `    ${JSON.stringify(model)}`).join(',\n')}\n  ]\n}\n`;
}
