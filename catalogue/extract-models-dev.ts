// Regenerates models-dev.json from a checkout of https://github.com/anomalyco/models.dev (MIT), which is not published on npm:
// node --import tsx catalogue/extract-models-dev.ts <folder of the checkout> <commit> <its date>
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'smol-toml';
import { type ModelsDevFact, modelsDevFile, modelsDevPath } from './models-dev.ts';

/** Vendors whose models are described by other sources: only dates and kinds of content are taken. */
const dated = ['openai', 'anthropic', 'google', 'deepseek', 'xai', 'mistral', 'groq', 'togetherai', 'fireworks-ai'];
const alsoDated = ['cerebras', 'moonshotai', 'zai', 'minimax', 'nvidia'];
/** Vendors that no other source describes. */
const described = ['perplexity', 'alibaba', 'siliconflow'];
/** Gateways: only dates are taken. */
const listing = ['vercel', 'openrouter'];

interface Toml {
  base_model?: string;
  release_date?: string;
  status?: string;
  reasoning?: boolean;
  modalities?: { input?: string[]; output?: string[] };
  limit?: { context?: number; output?: number };
  cost?: { input?: number; output?: number; cache_read?: number; cache_write?: number };
}

function readToml(path: string): Toml {
  return parse(readFileSync(path, 'utf8')) as Toml;
}

/** A model's own properties, merged with those of its base model. */
function readModel(checkout: string, path: string): Toml {
  const own = readToml(path);
  if (own.base_model === undefined) return own;
  const base = readToml(join(checkout, 'models', `${own.base_model}.toml`));
  return {
    ...base,
    ...own,
    modalities: { ...base.modalities, ...own.modalities },
    limit: { ...base.limit, ...own.limit },
  };
}

function released({ release_date: date, status }: Toml): ModelsDevFact {
  return { ...(date !== undefined && { released: date }), ...(status === 'deprecated' && { deprecated: true }) };
}

function contents({ modalities }: Toml): ModelsDevFact {
  const { input, output } = modalities ?? {};
  return { ...(input && { input }), ...(output && { output }) } as ModelsDevFact;
}

function rest({ reasoning, limit, cost }: Toml): ModelsDevFact {
  return {
    ...(reasoning !== undefined && { reasoning }),
    ...(limit?.context && { context: limit.context }),
    ...(limit?.output && { most: limit.output }),
    ...(cost?.input !== undefined &&
      cost.output !== undefined && {
        cost: {
          input: cost.input,
          output: cost.output,
          ...(cost.cache_read !== undefined && { cached: cost.cache_read }),
          ...(cost.cache_write !== undefined && { write: cost.cache_write }),
        },
      }),
  };
}

function readVendor(checkout: string, vendor: string, describe: (model: Toml) => ModelsDevFact) {
  const folder = join(checkout, 'providers', vendor, 'models');
  const files = readdirSync(folder, { recursive: true }).map(String);
  return files
    .filter((file) => file.endsWith('.toml'))
    .sort()
    .map((file) => [`${vendor}/${file.slice(0, -'.toml'.length)}`, describe(readModel(checkout, join(folder, file)))]);
}

const [checkout = '', commit = '', date = ''] = process.argv.slice(2);
const models = Object.fromEntries([
  ...[...dated, ...alsoDated].flatMap((vendor) =>
    readVendor(checkout, vendor, (model) => ({ ...released(model), ...contents(model) })),
  ),
  ...described.flatMap((vendor) =>
    readVendor(checkout, vendor, (model) => ({ ...released(model), ...contents(model), ...rest(model) })),
  ),
  ...listing.flatMap((vendor) => readVendor(checkout, vendor, released)),
]);
const file = modelsDevFile.parse({ repository: 'https://github.com/anomalyco/models.dev', commit, date, models });
const lines = Object.entries(file.models).map(([id, fact]) => `    ${JSON.stringify(id)}: ${JSON.stringify(fact)}`);
const { models: _models, ...head } = file;
const opening = JSON.stringify(head, null, 2).slice(0, -2);
writeFileSync(modelsDevPath, `${opening},\n  "models": {\n${lines.join(',\n')}\n  }\n}\n`);
