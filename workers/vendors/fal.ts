import { createDownloader } from '../download.ts';
import { createHttpClient } from '../http.ts';
import { falImages } from './fal-images.ts';
import { falVideos } from './fal-videos.ts';
import type { Offering } from './vendor.ts';
import type { VendorOptions } from './vendor-options.ts';
import { createFilmDownloader } from './video-request.ts';

/** fal's queue: `https://queue.fal.run`. Models are paths: `fal-ai/flux/dev`. */
export function createFal({ name, baseUrl, apiKey }: VendorOptions): Offering<'image' | 'video'> {
  const http = createHttpClient({
    vendor: name,
    baseUrl,
    headers: { authorization: `Key ${apiKey}` },
    secret: apiKey,
  });
  return {
    name,
    image: falImages(http, createDownloader({ trustedOrigin: new URL(baseUrl).origin })),
    video: falVideos(http, createFilmDownloader(baseUrl)),
    close: () => http.close(),
  };
}
