import { imageFields } from './media-reader-fields.ts';
import type { VendorDescription } from './vendor-description.ts';

/** Stability AI. */
export const stability: VendorDescription = {
  name: 'stability',
  baseUrl: 'https://api.stability.ai',
  needsKey: true,
  embedsFiles: true,
  mediaFields: {
    image: (model) => ({
      ...imageFields,
      mask: model === 'stable-image-inpaint' ? 'translated' : 'rejected',
      n: 'rejected',
      output_compression: 'rejected',
    }),
  },
  documentation: {
    does: "images: Stable Image, Stable Diffusion 3.5, inpainting with OpenAI's masks",
    checkedBy: 'documents, of 2025',
  },
};
