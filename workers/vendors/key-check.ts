import type { HttpClient } from '../http/http-client.ts';
import type { Vendor } from './vendor.ts';

/** Checks whether a vendor accepts the key, by a request that costs nothing. */
export function keyCheck(http: Pick<HttpClient, 'get'>, path: string): NonNullable<Vendor['checkKey']> {
  return async ({ signal, silenceMs }) => {
    await http.get({ path, signal, silenceMs });
  };
}
