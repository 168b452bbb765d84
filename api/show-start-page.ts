import { createRequire } from 'node:module';
import type { Middleware } from 'koa';
import { exampleModels } from '../shared/catalogue/example-models.ts';
import type { Services } from './services.ts';
import { startPage, startPagePolicy } from './start-page.ts';
import type { State } from './state.ts';

/** The package's own description, two folders up from the built file and one from the source. */
function readVersion(): string {
  const require = createRequire(import.meta.url);
  for (const path of ['../package.json', '../../package.json']) {
    try {
      return (require(path) as { version: string }).version;
    } catch {}
  }
  return 'unknown';
}

/** `GET /`: what runs and how to call it. The same for everybody; it shows no key. */
export function showStartPage(services: Services): Middleware<State> {
  const { catalogue, config, baseUrl } = services;
  const models = catalogue.list();
  const page = startPage({
    baseUrl,
    version: readVersion(),
    vendors: Object.keys(config.vendors),
    models: models.length,
    examples: exampleModels(config.vendors, config.models),
    sandbox: config.vendors.sandbox !== undefined,
  });
  return (ctx) => {
    ctx.state.endpoint = 'start';
    ctx.set('content-security-policy', startPagePolicy);
    ctx.type = 'text/html; charset=utf-8';
    ctx.body = page;
  };
}
