import type { Upload } from '../../shared/blobs/upload.ts';
import type { RequestFacts } from '../../shared/money/hold.ts';
import type { RequestText } from './request-text.ts';
import type { BilledExtra, VendorId } from './vendor-facts.ts';

/** Facts, besides a request's length, by which admission estimates its maximum cost. */
export type Extent = Omit<RequestFacts, 'bytes'>;

/**
 * A request's body after it was read, checked and parsed.
 * @template Requirements facts that the endpoint's `check` validates against the model's row
 * @template ViewOptions facts that the endpoint's view needs
 */
export interface ParsedRequest<Requirements = unknown, ViewOptions extends object = object> {
  /** The model the caller named. */
  readonly model: string;
  readonly stream: boolean;
  /**
   * The vendor-neutral request as JSON text of an object, without `model` and `stream`, and of `stream_options` only those
   * for the vendor, which come first. Unknown fields are included: they pass through to the vendor.
   */
  readonly request: RequestText;
  /** Whether the request contains image, audio or file data, which is stored as a blob whatever its size. */
  readonly hasMedia: boolean;
  /** Small, JSON. */
  readonly viewOptions: ViewOptions;
  /** Small. */
  readonly requirements: Requirements;
  /** Facts for the cost estimate besides its length, if any. */
  readonly extent?: Extent;
  /** Extras that its vendor may bill and no price covers, if any. */
  readonly extras?: readonly BilledExtra[];
  /** The first of these that a route of its model would request: then only unlimited accounts may use it. */
  readonly unpriced?: BilledExtra | undefined;
  /** Ids in the operator's own accounts at vendors, if any. */
  readonly vendorIds?: readonly VendorId[];
  /** Whether the caller has set `cache_control` anywhere, earlier turns included: then it gets no breakpoints besides. */
  readonly marksCache?: boolean;
  /** Whether it wants any input kept in its vendor's cache for longer than usual, which costs more. */
  readonly wantsHourCache?: boolean;
  /** The uploads of a form. */
  readonly files?: readonly Upload[];
  /** What a chat shares with those that a vendor's prompt cache can serve with it; see `cacheAffinity`. */
  readonly affinity?: string;
  /** Names of the routes that would refuse it. */
  readonly excludedRoutes?: readonly string[];
  /** The job is a resource: request and answer are stored for the retention time, and can be read and deleted. */
  readonly store?: boolean;
  /** The response is the resource in its current state (or its events) at once; the job continues independently. */
  readonly background?: boolean;
  /** The request's tags, as `requestTags` returns them. */
  readonly metadata?: string;
}

/** A `multipart/form-data` body. */
export interface Form {
  /** Values of each field, in order; names without a trailing `[]`. */
  readonly fields: ReadonlyMap<string, readonly string[]>;
  readonly files: readonly Upload[];
}

/**
 * Parses and checks a body. Pure, so that large bodies can be parsed in another thread.
 * @throws ApiError 400 that names the field at fault.
 */
export type Parse<Requirements = unknown, ViewOptions extends object = object> = (
  body: Uint8Array,
) => ParsedRequest<Requirements, ViewOptions>;

/** The same for a form. @throws ApiError 400 that names the field at fault. */
export type ParseForm<Requirements = unknown, ViewOptions extends object = object> = (
  form: Form,
) => ParsedRequest<Requirements, ViewOptions>;
