import type { Middleware } from 'koa';
import type { Catalogue } from '../../shared/catalogue/catalogue.ts';
import { exampleModels } from '../../shared/catalogue/example-models.ts';
import type { BaseUrls } from '../http/request-address.ts';
import type { State } from '../state.ts';
import { keepFile, sendKeptFile } from './kept-file.ts';
import { logo } from './page-parts.ts';
import { startPage, startPagePolicy } from './start-page.ts';

/** `GET /`: how to call what runs. The same for everybody; it shows no key. */
export function showStartPage(services: {
  readonly catalogue: Catalogue;
  readonly baseUrls: BaseUrls;
}): Middleware<State> {
  const { catalogue, baseUrls } = services;
  const pages = new Map<string, string>();
  let named: unknown;
  return (ctx) => {
    ctx.state.endpoint = 'start';
    const sources = catalogue.sources();
    if (named !== sources.models) {
      named = sources.models;
      const facts = { examples: exampleModels(sources), sandbox: sources.vendors.sandbox !== undefined };
      for (const baseUrl of baseUrls.all) pages.set(baseUrl, startPage({ baseUrl, ...facts }));
    }
    ctx.set('content-security-policy', startPagePolicy);
    ctx.type = 'text/html; charset=utf-8';
    ctx.body = pages.get(baseUrls.of(ctx.req));
  };
}

const icon = keepFile(Buffer.from(logo), 'image/svg+xml');

/** `GET /favicon.ico`: requested by browsers on their own. It is an SVG despite its name. */
export const showIcon: Middleware<State> = async (ctx) => {
  ctx.state.endpoint = 'favicon';
  await sendKeptFile(ctx, icon);
};
