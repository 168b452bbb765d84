import type { HttpClient } from '../http/http-client.ts';
import type { Vendor } from './vendor.ts';

/** Asks a vendor for something that costs nothing, to see whether it takes the key. */
export function keyCheck(http: Pick<HttpClient, 'get'>, path: string): NonNullable<Vendor['checkKey']> {
  return async ({ signal, silenceMs }) => {
    await http.get({ path, signal, silenceMs });
  };
}
