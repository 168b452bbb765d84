import type { HttpHeaders, HttpRequest } from '../../http/exchange.ts';
import { createHttpClient, type HttpClient } from '../../http/http-client.ts';
import { createFilmDownloader } from '../support/video-request.ts';
import type { Offering } from '../vendor.ts';
import type { VendorOptions } from '../vendor-options.ts';
import { klingError } from './errors.ts';
import { KlingToken } from './token.ts';
import { klingVideos } from './videos.ts';

/**
 * Kling (https://app.klingai.com/global/dev/document-api): `https://api-singapore.klingai.com/v1`.
 * @param options its key is a pair, `ACCESS_KEY:SECRET_KEY`
 * @throws Error for a key that is not a pair
 */
export function createKling({ name, baseUrl, apiKey }: VendorOptions): Offering<'video'> {
  const [, accessKey, secretKey] = /^([^:]+):([^:]+)$/.exec(apiKey) ?? [];
  if (accessKey === undefined || secretKey === undefined) {
    throw new Error(`The key of the vendor ${name} must be a pair: ACCESS_KEY:SECRET_KEY.`);
  }
  const token = new KlingToken(accessKey, secretKey);
  const toStatusError = (status: number, body: string, headers: HttpHeaders) =>
    klingError(name, status, body, headers, [secretKey, accessKey, token.get()]);
  const http = createHttpClient({ vendor: name, baseUrl, headers: {}, secret: secretKey, toStatusError });
  return {
    name,
    video: klingVideos(withToken(http, token), toStatusError, createFilmDownloader(baseUrl)),
    close: () => http.close(),
  };
}

/** A client whose requests carry a currently valid token. */
function withToken(http: HttpClient, token: KlingToken): HttpClient {
  const signed = <Request extends HttpRequest>(request: Request): Request => ({
    ...request,
    headers: { ...request.headers, authorization: `Bearer ${token.get()}` },
  });
  return {
    post: (request) => http.post(signed(request)),
    postForBytes: (request) => http.postForBytes(signed(request)),
    get: (request) => http.get(signed(request)),
    put: (request) => http.put(signed(request)),
    delete: (request) => http.delete(signed(request)),
    close: () => http.close(),
  };
}
