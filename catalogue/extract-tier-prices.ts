// Regenerates tier-prices.json from `model_prices_and_context_window_backup.json` of a release of LiteLLM (MIT), which is not on npm:
// pip download litellm --no-deps, unzip the file, then
// node --import tsx catalogue/extract-tier-prices.ts <that file> <version> <date of reading>
import { readFileSync, writeFileSync } from 'node:fs';
import { models } from '../shared/catalogue/models.ts';
import { type TierPrices, tierPricesFile, tierPricesPath } from './tier-prices.ts';

type Row = Readonly<Record<string, unknown>>;

/** LiteLLM's fields for the prices of tokens. */
const fields = {
  input: 'input_cost_per_token',
  cachedInput: 'cache_read_input_token_cost',
  cacheWrite: 'cache_creation_input_token_cost',
  output: 'output_cost_per_token',
  audioInput: 'input_cost_per_audio_token',
  imageOutput: 'output_cost_per_image_token',
} as const;
const longFields = ['input', 'cachedInput', 'cacheWrite', 'output'] as const;

/** LiteLLM's names of a vendor's model, the most exact first. */
const names: Readonly<Record<string, (model: string) => readonly string[]>> = {
  openai: (model) => [model],
  gemini: (model) => [`gemini/${model}`],
  fireworks: (model) => [`fireworks_ai/${model}`],
  // It has some profiles of a region only by the model's name.
  bedrock: (model) => [model, model.replace(/^(global|us)\./, '')],
};

function readPrices(row: Row, suffix: string): TierPrices {
  const price = (field: string): number | undefined => {
    const dollars = row[field];
    return typeof dollars === 'number' ? Number((dollars * 1e6).toPrecision(12)) : undefined;
  };
  const own = Object.entries(fields).map(([name, field]) => [name, price(field + suffix)] as const);
  const steps = [...new Set(Object.keys(row).flatMap((field) => /_above_(\d+)k_tokens/.exec(field)?.[1] ?? []))];
  const above = steps.flatMap((thousands) => {
    const step = longFields.map(
      (name) => [name, price(`${fields[name]}_above_${thousands}k_tokens${suffix}`)] as const,
    );
    const known = step.filter(([, value]) => value !== undefined);
    return known.length === 0 ? [] : [{ tokens: Number(thousands) * 1000, ...Object.fromEntries(known) }];
  });
  return {
    ...Object.fromEntries(own.filter(([, value]) => value !== undefined)),
    ...(above.length > 0 && { above }),
  };
}

function readModel(row: Row): Record<string, TierPrices> | undefined {
  const tiers = ['flex', 'priority', 'ultrafast'].flatMap((tier) => {
    const prices = readPrices(row, `_${tier}`);
    return prices.input === undefined || prices.output === undefined ? [] : [[tier, prices] as const];
  });
  return tiers.length === 0 ? undefined : { standard: readPrices(row, ''), ...Object.fromEntries(tiers) };
}

const [path = '', version = '', date = ''] = process.argv.slice(2);
const list = JSON.parse(readFileSync(path, 'utf8')) as Readonly<Record<string, Row>>;
const routes = models.filter(({ capability }) => capability === 'chat').flatMap((model) => model.routes);
const found = routes.flatMap(({ vendor, model }) => {
  const name = names[vendor]?.(model).find((each) => Object.hasOwn(list, each));
  const prices = name === undefined ? undefined : readModel(list[name] as Row);
  return prices === undefined ? [] : [[`${vendor}/${model}`, prices] as const];
});
const source = 'https://pypi.org/project/litellm';
const file = tierPricesFile.parse({ source, version, date, models: Object.fromEntries(found) });
const lines = Object.entries(file.models).map(([id, prices]) => `    ${JSON.stringify(id)}: ${JSON.stringify(prices)}`);
const { models: _models, ...head } = file;
const opening = JSON.stringify(head, null, 2).slice(0, -2);
writeFileSync(tierPricesPath, `${opening},\n  "models": {\n${lines.join(',\n')}\n  }\n}\n`);
