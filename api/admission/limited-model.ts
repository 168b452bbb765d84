import { type Catalogue, routeName } from '../../shared/catalogue/catalogue.ts';
import type { Model } from '../../shared/catalogue/model.ts';
import type { JobIdentity } from '../../shared/jobs/job-state.ts';
import type { Caller } from '../auth/caller.ts';

/**
 * The name under which a key limits a job's model; undefined: it does not. A limit holds for every name of a model, or a caller would
 * escape it by another one: an alias, the model that an alias stands for, or `vendor/model`. A limit for the very name comes first.
 */
export function limitedModel(
  catalogue: Pick<Catalogue, 'find'>,
  { model, capability }: Pick<JobIdentity, 'model' | 'capability'>,
  modelLimits: NonNullable<Caller['modelLimits']>,
): string | undefined {
  // A model's name may equal an inherited property.
  if (Object.hasOwn(modelLimits, model)) return model;
  const asked = catalogue.find(model, capability);
  if (asked === undefined) return undefined;
  return Object.keys(modelLimits).find((name) => {
    const limited = catalogue.find(name, capability);
    const isAlias = (limited?.aliasOf ?? name) === (asked.aliasOf ?? model);
    return isAlias || hasRoute(limited, model) || hasRoute(asked, name);
  });
}

/** Whether `vendor/model` is one of a model's routes. */
function hasRoute(model: Model | undefined, name: string): boolean {
  return model?.routes.some((route) => routeName(route) === name) === true;
}
