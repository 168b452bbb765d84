import { imageFields } from './media-reader-fields.ts';
import type { VendorDescription } from './vendor-description.ts';

/** Black Forest Labs. */
export const blackForestLabs: VendorDescription = {
  name: 'black-forest-labs',
  baseUrl: 'https://api.bfl.ai/v1',
  needsKey: true,
  embedsFiles: true,
  mediaFields: { image: { ...imageFields, n: 'rejected', output_compression: 'rejected' } },
  documentation: { does: 'images', checkedBy: 'documents' },
};
