import type { Model } from '../../api/models.ts';
import type { ModelOrder, ModelsSearch } from './models-search.ts';

/** Sort keys of a model; null sorts last in both directions. */
const keyOf: Readonly<Record<ModelOrder, (model: Model) => string | number | null>> = {
  model: ({ id }) => id,
  vendor: ({ vendors, owned_by: maker }) => vendors[0] ?? maker,
  context: ({ context_window: tokens }) => tokens,
  input: ({ prices }) => prices?.input ?? null,
  output: ({ prices }) => prices?.output ?? null,
};

/** The models that pass the filters, in the chosen order. */
export function listModels<Listed extends Model>(models: readonly Listed[], search: ModelsSearch): readonly Listed[] {
  const words = (search.search ?? '').toLowerCase().split(/\s+/).filter(Boolean);
  const found = models.filter((model) => {
    const text = `${model.id} ${model.owned_by} ${model.vendors.join(' ')}`.toLowerCase();
    return (
      words.every((word) => text.includes(word)) &&
      (search.vendor === undefined || model.vendors.includes(search.vendor)) &&
      (search.capability === undefined || model.capability === search.capability) &&
      (search.context === undefined || (model.context_window ?? 0) >= search.context) &&
      (search.available !== true || model.available)
    );
  });
  const key = keyOf[search.order ?? 'model'];
  const sign = search.falling === true ? -1 : 1;
  return found.sort((one, other) => {
    // Available models come first, unless another order is chosen.
    if (search.order === undefined && one.available !== other.available) return one.available ? -1 : 1;
    const [a, b] = [key(one), key(other)];
    if (a === null || b === null) return Number(a === null) - Number(b === null);
    return a === b ? one.id.localeCompare(other.id) : a < b ? -sign : sign;
  });
}
