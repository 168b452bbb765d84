import { lookup } from 'node:dns/promises';
import { isIP } from 'node:net';
import {
  isMediaLink,
  isWebLink,
  linkPath,
  type MediaLink,
  mayHoldLink,
  mediaLinks,
} from '../../shared/blobs/media-links.ts';
import type { VendorSettings } from '../../shared/config/vendor-settings.ts';
import { ApiError } from '../../shared/errors.ts';
import { createCallerDownloader, type Downloader } from '../http/download.ts';
import { isPublicAddress } from '../http/public-address.ts';
import { requestText } from '../vendors/request-body.ts';
import { InlineMedia } from '../vendors/support/inline-media.ts';
import type { VendorCall } from '../vendors/vendor.ts';

/** Maximum number of links fetched for one request. */
const maxLinks = 20;
/** How long (ms) the resolved addresses of a vendor's host are cached. */
const resolvedMs = 60_000;

/** Resolves a host name to all its addresses. */
export type ResolveVendor = (host: string) => Promise<readonly string[]>;

export interface MediaGateOptions {
  readonly download?: Downloader;
  readonly resolveVendor?: ResolveVendor;
}

/**
 * Guards vendors against the links in requests. A vendor inside the operator's network would follow a caller's link from
 * there, to hosts that callers must not reach. So its links are fetched here, from public addresses only, and passed on as
 * data. A vendor on the internet fetches them itself.
 */
export class MediaGate {
  readonly #settings: Pick<VendorSettings, 'row' | 'baseUrl'>;
  readonly #download: Downloader;
  readonly #resolveVendor: ResolveVendor;
  #known: { readonly isInside: boolean; readonly until: number } | undefined;

  constructor(settings: Pick<VendorSettings, 'row' | 'baseUrl'>, options: MediaGateOptions = {}) {
    this.#settings = settings;
    this.#download = options.download ?? createCallerDownloader();
    this.#resolveVendor = options.resolveVendor ?? resolveAll;
  }

  /**
   * Returns the call as its vendor may get it: unchanged, unless it has links that the vendor must not follow.
   * @throws ApiError 400 naming the field whose link leads to no public file, or to one of the wrong kind.
   */
  pass(call: VendorCall): VendorCall | Promise<VendorCall> {
    if (!mayHoldLink(call.request)) return call;
    const request = JSON.parse(requestText(call.request)) as object;
    const links = mediaLinks(request);
    const wrong = links.find(({ url }) => !isMediaLink(url));
    if (wrong !== undefined) throw invalid(wrong, 'it is neither an http nor an https link, nor a data URL');
    const toFetch = links.filter(({ url }) => isWebLink(url));
    return toFetch.length === 0 ? call : this.#withData(call, request, toFetch);
  }

  async #withData(call: VendorCall, request: object, links: readonly MediaLink[]): Promise<VendorCall> {
    if (!(await this.#isInside())) return call;
    const beyond = links[maxLinks];
    if (beyond !== undefined) {
      throw invalid(beyond, `at most ${maxLinks} links are fetched for a request: send data URLs`);
    }
    const media = new InlineMedia(call, this.#download);
    for (const link of links) {
      const { holder, key, url } = link;
      const path = linkPath(link);
      const { type, data } = await media.fromLink(url, path, kindOf(path));
      const dataUrl = `data:${type};base64,${data}`;
      if (key === 'file_url') {
        // The field for a link takes no data; the field for data requires a name.
        delete holder.file_url;
        holder.filename ??= new URL(url).pathname.split('/').at(-1) || 'file';
        holder.file_data = dataUrl;
      } else {
        holder[key] = dataUrl;
      }
    }
    return { ...call, request: JSON.stringify(request) };
  }

  async #isInside(): Promise<boolean> {
    const { row, baseUrl } = this.#settings;
    // Servers without keys run inside their operator's network.
    if (!row.needsKey) return true;
    const now = Date.now();
    if (this.#known === undefined || this.#known.until < now) {
      const host = new URL(baseUrl).hostname.replace(/^\[|\]$/g, '');
      // A host that does not resolve now may do so when it is called.
      const addresses = isIP(host) !== 0 ? [host] : await this.#resolveVendor(host).catch(() => []);
      const isPublic = addresses.length > 0 && addresses.every(isPublicAddress);
      this.#known = { isInside: !isPublic, until: now + resolvedMs };
    }
    return this.#known.isInside;
  }
}

/** The guard of a vendor; undefined for one that is known, without a lookup, to be outside the operator's network or to fetch nothing. */
export function mediaGate(
  settings: Pick<VendorSettings, 'row' | 'baseUrl'>,
  options?: MediaGateOptions,
): MediaGate | undefined {
  const { row, baseUrl } = settings;
  const isElsewhere = row.name === 'sandbox' || (row.needsKey && baseUrl === row.baseUrl);
  return isElsewhere ? undefined : new MediaGate(settings, options);
}

async function resolveAll(host: string): Promise<readonly string[]> {
  return (await lookup(host, { all: true })).map(({ address }) => address);
}

/** More than the names of such fields have. A key may have megabytes, and would be read from each `image` in it to its end. */
const fieldCharacters = 200;

/** The kind of media a field takes, by its name: `image`, `video`, `audio`; undefined: any. */
function kindOf(path: string): string | undefined {
  return /(image|video|audio)[^.]*(?:\.ur[il]s?)?(?:\[\d+\])?$/.exec(path.slice(-fieldCharacters))?.[1];
}

function invalid(link: MediaLink, message: string): ApiError {
  const param = linkPath(link);
  return new ApiError('invalid_request_error', `Invalid '${param}': ${message}.`, { param });
}
