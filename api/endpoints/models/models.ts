import type { Middleware } from 'koa';
import { type Catalogue, routeName } from '../../../shared/catalogue/catalogue.ts';
import type { Model } from '../../../shared/catalogue/models.ts';
import { assertInScope, type Caller, isInScope } from '../../auth/caller.ts';
import { WrittenJson } from '../../http/compress-json.ts';
import { wantsAnthropicModels } from '../../http/errors.ts';
import { modelFacts } from '../../management/console/models.ts';
import { missingModel } from '../../pipeline/missing.ts';
import type { State } from '../../state.ts';
import { anthropicModel, anthropicModelList } from './anthropic-models.ts';

/** Dependencies of the routes of models. */
export interface ModelsDependencies {
  readonly catalogue: Catalogue;
}

interface WireModel {
  readonly id: string;
  readonly object: 'model';
  readonly created: number;
  readonly owned_by: string;
  /** Facts beyond OpenAI's format; unknown ones are omitted. */
  readonly [fact: string]: unknown;
}

function toWire(model: Model): WireModel {
  const { id, created, ownedBy, deprecatedAt } = model;
  const { capability, context_window, max_output_tokens, input, output, reasoning, prices } = modelFacts(model);
  const facts = { capability, context_window, max_output_tokens, input, output, reasoning, prices };
  const deprecated =
    deprecatedAt === undefined ? {} : { deprecated_at: deprecatedAt, shutdown_date: dayOf(deprecatedAt) };
  return { id, object: 'model', created, owned_by: ownedBy, ...said(facts), ...deprecated };
}

/** The day of a time in seconds since 1970: `2026-10-23`. */
function dayOf(seconds: number): string {
  return new Date(seconds * 1000).toISOString().slice(0, 10);
}

/** Removes null values, such as most prices. */
function said(facts: object): Record<string, unknown> {
  const known = Object.entries(facts).filter(
    ([, value]) => value !== null && !(Array.isArray(value) && value.length === 0),
  );
  return Object.fromEntries(known.map(([name, value]) => [name, name === 'prices' ? said(value) : value]));
}

/** What models are on the wire: a catalogue may have thousands, which are listed for free and change only with a reload. */
const texts = new WeakMap<Model, string>();

function textOf(model: Model): string {
  const known = texts.get(model) ?? JSON.stringify(toWire(model));
  texts.set(model, known);
  return known;
}

/** `GET /v1/models`: the models that the key may use and that are usable now, as OpenAI lists them, or as Anthropic does. */
export function listModels(services: ModelsDependencies): Middleware<State> {
  return (ctx) => {
    ctx.state.endpoint = 'models';
    const { caller } = ctx.state;
    const models = services.catalogue.list().filter((model) => isInScope(caller, model));
    ctx.vary('anthropic-version');
    ctx.body = wantsAnthropicModels(ctx)
      ? anthropicModelList(models, ctx.query)
      : new WrittenJson(`{"object":"list","data":[${models.map(textOf).join(',')}]}`);
  };
}

/** `GET /v1/models/{id}`; ids may contain slashes. One at the end is none of the id: the other routes take it, too. */
export function retrieveModel(services: ModelsDependencies): Middleware<State> {
  return (ctx) => {
    ctx.state.endpoint = 'models';
    const id = (ctx.params.id as string).replace(/\/$/, '');
    const { caller } = ctx.state;
    const row = rowOf(services.catalogue, id);
    const model = row ?? unlistedModel(services.catalogue, id, caller);
    if (model === undefined) throw missingModel(services.catalogue, id, caller);
    assertInScope(caller, model);
    ctx.vary('anthropic-version');
    if (wantsAnthropicModels(ctx)) ctx.body = anthropicModel(model);
    else ctx.body = row === undefined ? { ...toWire(model), capability: undefined } : toWire(model);
  };
}

/** A listed model by its id, or by `vendor/model` if its vendor is open. */
function rowOf(catalogue: Catalogue, id: string): Model | undefined {
  const known = catalogue.find(id);
  if (known !== undefined) return known;
  const row = catalogue.list().find(({ routes }) => routes.some((route) => routeName(route) === id));
  return row && catalogue.find(id, row.capability);
}

/** A model of an open vendor that is listed nowhere: what it does is not known, so it is taken for something that the key may use. */
function unlistedModel(
  catalogue: Catalogue,
  id: string,
  { capabilities = ['chat'] }: Pick<Caller, 'capabilities'>,
): Model | undefined {
  const [found] = capabilities.flatMap((capability) => catalogue.find(id, capability) ?? []);
  return found;
}
