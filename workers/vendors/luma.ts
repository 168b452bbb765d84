import { createDownloader } from '../download.ts';
import { createHttpClient } from '../http.ts';
import { creditErrors } from './credit-errors.ts';
import { lumaImages } from './luma-images.ts';
import { lumaVideos } from './luma-videos.ts';
import type { Offering } from './vendor.ts';
import type { VendorOptions } from './vendor-options.ts';
import { createFilmDownloader } from './video-request.ts';

/** Luma's Dream Machine (https://docs.lumalabs.ai): `https://api.lumalabs.ai/dream-machine/v1`. */
export function createLuma({ name, baseUrl, apiKey }: VendorOptions): Offering<'image' | 'video'> {
  const http = createHttpClient({
    vendor: name,
    baseUrl,
    headers: { authorization: `Bearer ${apiKey}` },
    secret: apiKey,
    toStatusError: creditErrors(name, apiKey),
  });
  return {
    name,
    image: lumaImages(http, createDownloader({ trustedOrigin: new URL(baseUrl).origin })),
    video: lumaVideos(http, createFilmDownloader(baseUrl)),
    close: () => http.close(),
  };
}
