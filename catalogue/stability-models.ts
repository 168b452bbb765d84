import type { Traits } from '../shared/catalogue/model.ts';
import { type MediaModel, media } from './media-model.ts';
import { nano } from './prices.ts';

type Tasks = NonNullable<Traits['image']>['tasks'];

/**
 * A Stability image model.
 * @param credits per image; a credit is a cent (https://platform.stability.ai/pricing).
 */
function stableImage(name: string, tasks: Tasks, credits: number): MediaModel {
  return media(
    name,
    {
      ...{ vendor: 'stability', maker: 'stability', prices: { image: nano(credits / 100) }, named: undefined },
      ...{ input: tasks.includes('edit') ? ['text', 'image'] : ['text'], output: ['image'] },
    },
    // Shapes are set by ratio, so sizes are not fixed.
    { image: { tasks, most: 1, partial: false, responseFormat: false } },
  );
}

/**
 * Stability AI's image models: https://platform.stability.ai/docs/api-reference, which lists their credits, except those of
 * inpainting: https://stability.ai/api-pricing-update-25.
 */
export function stabilityModels(): MediaModel[] {
  return [
    stableImage('stable-image-ultra', ['generation', 'edit'], 8),
    stableImage('stable-image-core', ['generation'], 3),
    stableImage('stable-image-inpaint', ['edit'], 5),
    stableImage('sd3.5-large', ['generation', 'edit'], 6.5),
    stableImage('sd3.5-large-turbo', ['generation', 'edit'], 4),
    stableImage('sd3.5-medium', ['generation', 'edit'], 3.5),
  ];
}
