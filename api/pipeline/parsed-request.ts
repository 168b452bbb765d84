import type { Upload } from '../../shared/blobs/upload.ts';
import type { RequestFacts } from '../../shared/money/hold.ts';
import type { BilledExtra } from './billed-extras.ts';
import type { VendorId } from './vendor-ids.ts';

/** How much a request asks for, beside its own length: by that admission reckons what it may cost. */
export type Extent = Omit<RequestFacts, 'bytes'>;

/**
 * What is left of a request's body once it has been read, checked and taken apart.
 * @template Requirements what the endpoint's `check` validates against the model's row
 * @template ViewOptions what the endpoint's view needs of the request
 */
export interface ParsedRequest<Requirements = unknown, ViewOptions extends object = object> {
  /** The model the caller named. */
  readonly model: string;
  readonly stream: boolean;
  /**
   * The vendor-neutral request as JSON text of an object, without `model` and `stream`, and without `stream_options` but
   * for those that are the vendor's business, which come first. Unknown fields are in it: they pass through to the vendor.
   */
  readonly request: string;
  /** True when the request holds image, audio or file data, which travels as a blob whatever its size. */
  readonly hasMedia: boolean;
  /** Small, JSON. */
  readonly viewOptions: ViewOptions;
  /** Small. */
  readonly requirements: Requirements;
  /** What it may cost is reckoned by; left out: nothing but its length. */
  readonly extent?: Extent;
  /** What it asks for that its vendor may bill and no price covers; left out: nothing. */
  readonly extras?: readonly BilledExtra[];
  /** The first of these that a route of its model would ask its vendor for: then only who has no limit may. */
  readonly unpriced?: BilledExtra | undefined;
  /** What it names in the operator's own accounts at vendors; left out: nothing. */
  readonly vendorIds?: readonly VendorId[];
  /** The files that came with a form. */
  readonly files?: readonly Upload[];
  /** Names of the routes that would refuse it. */
  readonly excludedRoutes?: readonly string[];
  /** The job is a resource of its own: request and answer are kept for the retention time, and can be read and deleted. */
  readonly store?: boolean;
  /** The request is answered at once with the resource as it is then (or with its events); the job goes on by itself. */
  readonly background?: boolean;
  /** The request's tags, as `requestTags` gives them. */
  readonly metadata?: string;
}

/** A `multipart/form-data` body. */
export interface Form {
  /** Values of each field, in order; names without a `[]` at the end. */
  readonly fields: ReadonlyMap<string, readonly string[]>;
  readonly files: readonly Upload[];
}

/**
 * Reads and checks a body. Pure, so that it can run in another thread for large bodies.
 * @throws ApiError 400 that names the field at fault.
 */
export type Parse<Requirements = unknown, ViewOptions extends object = object> = (
  body: Uint8Array,
) => ParsedRequest<Requirements, ViewOptions>;

/** The same for a form. @throws ApiError 400 that names the field at fault. */
export type ParseForm<Requirements = unknown, ViewOptions extends object = object> = (
  form: Form,
) => ParsedRequest<Requirements, ViewOptions>;
