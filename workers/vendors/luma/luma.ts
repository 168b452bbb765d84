import { createDownloader } from '../../http/download.ts';
import { createHttpClient } from '../../http/http-client.ts';
import { creditErrors } from '../support/credit-errors.ts';
import { createFilmDownloader } from '../support/video-request.ts';
import type { Offering } from '../vendor.ts';
import type { VendorOptions } from '../vendor-options.ts';
import { lumaImages } from './images.ts';
import { lumaVideos } from './videos.ts';

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
