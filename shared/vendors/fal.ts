import { imageFields, videoFields } from './media-reader-fields.ts';
import type { VendorDescription } from './vendor-description.ts';

/** Models that choose the format of their images themselves, and pass over a wish for another without a word. */
export const choosesFormat = /recraft|dreamina|luma-photon/;

/** fal. */
export const fal: VendorDescription = {
  name: 'fal',
  baseUrl: 'https://queue.fal.run',
  needsKey: true,
  embedsFiles: true,
  mediaFields: {
    image: (model) => ({
      ...imageFields,
      n: 'translated',
      output_compression: 'rejected',
      ...(choosesFormat.test(model) && { output_format: 'rejected' }),
    }),
    video: videoFields('aspect_ratio', 'resolution', 'duration'),
  },
  documentation: { does: 'images, videos', checkedBy: 'SDK' },
};
