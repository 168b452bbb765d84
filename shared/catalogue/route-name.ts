import type { ModelRoute } from './models.ts';

/** What a route is called in settings, metrics and logs: `vendor/model`, by the vendor's name of the model. */
export function routeName({ vendor, model }: Pick<ModelRoute, 'vendor' | 'model'>): string {
  return `${vendor}/${model}`;
}
