import type { Middleware } from 'koa';
import { exampleModels } from '../../shared/catalogue/example-models.ts';
import type { Config } from '../../shared/config/config.ts';
import type { BaseUrls } from '../http/request-address.ts';
import type { State } from '../state.ts';
import { keepFile, sendKeptFile } from './kept-file.ts';
import { logo } from './page-parts.ts';
import { startPage, startPagePolicy } from './start-page.ts';

/** `GET /`: how to call what runs. The same for everybody; it shows no key. */
export function showStartPage(services: { readonly config: Config; readonly baseUrls: BaseUrls }): Middleware<State> {
  const { config, baseUrls } = services;
  const facts = {
    examples: exampleModels(config.vendors, config.models),
    sandbox: config.vendors.sandbox !== undefined,
  };
  const pages = new Map(baseUrls.all.map((baseUrl) => [baseUrl, startPage({ baseUrl, ...facts })]));
  return (ctx) => {
    ctx.state.endpoint = 'start';
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
