import { createDownloader } from '../../http/download.ts';
import { createHttpClient } from '../../http/http-client.ts';
import { createFilmDownloader } from '../support/video-request.ts';
import type { Offering } from '../vendor.ts';
import type { VendorOptions } from '../vendor-options.ts';
import { falErrors } from './errors.ts';
import { falImages } from './images.ts';
import { falVideos } from './videos.ts';

/** fal's queue: `https://queue.fal.run`. Models are paths: `fal-ai/flux/dev`. */
export function createFal({ name, baseUrl, apiKey }: VendorOptions): Offering<'image' | 'video'> {
  const http = createHttpClient({
    vendor: name,
    baseUrl,
    headers: { authorization: `Key ${apiKey}` },
    secret: apiKey,
    toStatusError: falErrors(name, apiKey),
  });
  return {
    name,
    image: falImages(http, createDownloader({ trustedOrigin: new URL(baseUrl).origin })),
    video: falVideos(http, createFilmDownloader(baseUrl)),
    close: () => http.close(),
  };
}
