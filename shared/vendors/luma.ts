import { imageFields, videoFields } from './media-reader-fields.ts';
import type { VendorDescription } from './vendor-description.ts';

/** Luma. */
export const luma: VendorDescription = {
  name: 'luma',
  baseUrl: 'https://api.lumalabs.ai/dream-machine/v1',
  needsKey: true,
  mediaFields: {
    image: { ...imageFields, n: 'rejected', output_format: 'translated', output_compression: 'rejected' },
    video: videoFields('aspect_ratio', 'resolution', 'duration'),
  },
  documentation: { does: 'videos, images; it takes links to pictures, not pictures', checkedBy: 'SDK' },
};
