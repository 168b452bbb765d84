import type { Model } from '../../api/models.ts';
import type { ModelOrder, ModelsSearch } from './models-search.ts';

/** What a model is ordered by; null: it has none, and stands at the end whichever way. */
const keyOf: Readonly<Record<ModelOrder, (model: Model) => string | number | null>> = {
  model: ({ id }) => id,
  vendor: ({ vendors, owned_by: maker }) => vendors[0] ?? maker,
  context: ({ context_window: tokens }) => tokens,
  input: ({ prices }) => prices?.input ?? null,
  output: ({ prices }) => prices?.output ?? null,
};

/** The models that the filters leave, in their order. */
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
    // What can be used comes first, until another order is asked for.
    if (search.order === undefined && one.available !== other.available) return one.available ? -1 : 1;
    const [a, b] = [key(one), key(other)];
    if (a === null || b === null) return Number(a === null) - Number(b === null);
    return a === b ? one.id.localeCompare(other.id) : a < b ? -sign : sign;
  });
}
