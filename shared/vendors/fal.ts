import { imageFields, videoFields } from './media-reader-fields.ts';
import type { VendorDescription } from './vendor-description.ts';

/** fal. */
export const fal: VendorDescription = {
  name: 'fal',
  baseUrl: 'https://queue.fal.run',
  needsKey: true,
  mediaFields: {
    image: { ...imageFields, n: 'translated', output_compression: 'rejected' },
    video: videoFields('aspect_ratio', 'resolution', 'duration'),
  },
  documentation: { does: 'images, videos', checkedBy: 'SDK' },
};
