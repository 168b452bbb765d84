// Regenerates shared/catalogue/models.json: `npm run catalogue`. Needs the npm registry once per version of a source.
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { buildCatalogue, catalogueText } from './build-catalogue.ts';

const path = fileURLToPath(new URL('../shared/catalogue/models.json', import.meta.url));

/** Ids of the file to be replaced; it may have an older shape. */
function idsBefore(): string[] {
  if (!existsSync(path)) return [];
  return (JSON.parse(readFileSync(path, 'utf8')) as { models: { id: string }[] }).models.map(({ id }) => id);
}

const before = new Set(idsBefore());
const made = buildCatalogue(new Date());
writeFileSync(path, catalogueText(made));
const now = new Set(made.models.map(({ id }) => id));
console.log(`${now.size} models.`);
for (const id of now) if (!before.has(id)) console.log(`+ ${id}`);
for (const id of before) if (!now.has(id)) console.log(`- ${id}`);
