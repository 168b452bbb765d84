import type { Middleware } from 'koa';
import type { Capability } from '../../shared/capabilities/capability.ts';
import type { Catalogue } from '../../shared/catalogue/catalogue.ts';
import { exampleModels } from '../../shared/catalogue/example-models.ts';
import type { BaseUrls } from '../http/request-address.ts';
import { type KeptFile, keepFile, sendKeptFile } from '../pages/kept-file.ts';
import type { State } from '../state.ts';
import type { ReferenceFacts } from './document.ts';
import type { ExampleModels } from './operation.ts';

/** Dependencies of the API reference. */
export interface ServeReferenceDependencies {
  readonly baseUrls: BaseUrls;
  readonly catalogue: Catalogue;
}

/** Makes a text of the reference. */
type Write = (facts: ReferenceFacts) => string;

/**
 * The routes that tell what the API is. Anybody may call them. The texts are made of hundreds of schemas, which take 7 MB: they are
 * loaded for the first who asks.
 */
export function referenceRoutes(
  services: ServeReferenceDependencies,
): Record<'openapi' | 'page' | 'llms', Middleware<State>> {
  const loadPage = () => import('./reference-page.ts');
  const page = serve(services, 'docs', 'text/html; charset=utf-8', async () => (await loadPage()).referencePage);
  return {
    /** `GET /docs` */
    page: async (ctx, next) => {
      ctx.set('content-security-policy', (await loadPage()).referencePagePolicy);
      return page(ctx, next);
    },
    /** `GET /llms.txt` */
    llms: serve(services, 'llms', 'text/plain; charset=utf-8', async () => (await import('./llms-text.ts')).llmsText),
    /** `GET /openapi.json` */
    openapi: serve(services, 'openapi', 'application/json', async () => {
      const { openApiDocument } = await import('./document.ts');
      return (facts) => JSON.stringify(openApiDocument(facts));
    }),
  };
}

/**
 * Sends a text that is made on first use, once for each base URL (of which there are few), and again once the models have changed.
 * @param load loads what makes the text
 */
function serve(
  services: ServeReferenceDependencies,
  endpoint: string,
  mediaType: string,
  load: () => Promise<Write>,
): Middleware<State> {
  const files = new Map<string, KeptFile>();
  let named: unknown;
  return async (ctx) => {
    ctx.state.endpoint = endpoint;
    const write = await load();
    const { models } = services.catalogue.sources();
    if (named !== models) files.clear();
    named = models;
    const baseUrl = services.baseUrls.of(ctx.req);
    let file = files.get(baseUrl);
    if (file === undefined) {
      file = keepFile(Buffer.from(write({ baseUrl, models: modelsOf(services) })), mediaType);
      files.set(baseUrl, file);
    }
    await sendKeptFile(ctx, file);
  };
}

/** The models that the examples name: of the sandbox where it is on, else some that can be used. */
function modelsOf({ catalogue }: ServeReferenceDependencies): ExampleModels {
  const sources = catalogue.sources();
  const { chat, image, speech, video } = exampleModels(sources);
  const usable = catalogue.list();
  const one = (capability: Capability, sandbox: string, isLegacy?: true): string =>
    sources.vendors.sandbox === undefined
      ? (usable.find((model) => model.capability === capability && model.legacyCompletions === isLegacy)?.id ?? sandbox)
      : sandbox;
  return {
    ...{ chat, image, speech, video: video ?? one('video', 'sandbox-video') },
    completion: one('chat', 'sandbox-instruct', true),
    embedding: one('embedding', 'sandbox-embedding'),
    transcription: one('transcription', 'sandbox-transcribe'),
  };
}
