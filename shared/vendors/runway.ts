import { videoFields } from './media-reader-fields.ts';
import type { VendorDescription } from './vendor-description.ts';

/** Runway. */
export const runway: VendorDescription = {
  name: 'runway',
  baseUrl: 'https://api.dev.runwayml.com/v1',
  needsKey: true,
  embedsFiles: true,
  mediaFields: { video: videoFields('ratio', 'duration') },
  documentation: { does: 'videos: Gen-4, and Veo there', checkedBy: 'SDK' },
};
