import { createDownloader } from '../../http/download.ts';
import { createHttpClient } from '../../http/http-client.ts';
import { createFilmDownloader } from '../support/video-request.ts';
import type { Offering } from '../vendor.ts';
import type { VendorOptions } from '../vendor-options.ts';
import { replicateImages } from './images.ts';
import { replicateVideos } from './videos.ts';

/** Replicate: `https://api.replicate.com/v1`. Models are `owner/name`, or `owner/name:version`. */
export function createReplicate({ name, baseUrl, apiKey: secret }: VendorOptions): Offering<'image' | 'video'> {
  const headers = { authorization: `Bearer ${secret}` };
  const options = { vendor: name, baseUrl, secret };
  const http = createHttpClient({ ...options, headers });
  const api = { http, secret };
  // Most images are ready within seconds. Beyond that it is better to know the prediction's name.
  const waiting = createHttpClient({ ...options, headers: { ...headers, prefer: 'wait=5' } });
  return {
    name,
    image: replicateImages(
      { http: waiting, secret },
      api,
      createDownloader({ trustedOrigin: new URL(baseUrl).origin }),
    ),
    video: replicateVideos(api, createFilmDownloader(baseUrl)),
    close: async () => {
      await Promise.all([http.close(), waiting.close()]);
    },
  };
}
