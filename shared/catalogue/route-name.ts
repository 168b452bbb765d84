import type { ModelRoute } from './models.ts';

/** A route's name in settings, metrics and logs: `vendor/model`, with the vendor's name of the model. */
export function routeName({ vendor, model }: Pick<ModelRoute, 'vendor' | 'model'>): string {
  return `${vendor}/${model}`;
}
