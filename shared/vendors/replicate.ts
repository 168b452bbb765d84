import { imageFields, videoFields } from './media-reader-fields.ts';
import type { VendorDescription } from './vendor-description.ts';

/** Replicate. */
export const replicate: VendorDescription = {
  name: 'replicate',
  baseUrl: 'https://api.replicate.com/v1',
  needsKey: true,
  embedsFiles: true,
  mediaFields: {
    image: { ...imageFields, n: 'translated', output_format: 'translated', output_compression: 'translated' },
    video: videoFields('aspect_ratio', 'resolution', 'duration'),
  },
  documentation: { does: 'images, videos', checkedBy: 'SDK' },
};
