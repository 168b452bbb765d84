import { videoFields } from './media-reader-fields.ts';
import type { VendorDescription } from './vendor-description.ts';

/** Kling. */
export const kling: VendorDescription = {
  name: 'kling',
  baseUrl: 'https://api-singapore.klingai.com/v1',
  needsKey: true,
  embedsFiles: true,
  // `ACCESS_KEY:SECRET_KEY`
  keyForm: 'pair',
  mediaFields: { video: videoFields('aspect_ratio', 'mode', 'duration') },
  documentation: {
    turnedOnBy: '`KLING_API_KEY` (`ACCESS_KEY:SECRET_KEY`)',
    does: 'videos',
    checkedBy: 'documents, second-hand',
  },
};
