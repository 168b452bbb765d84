/** What is left of a request's body once it has been read, checked and taken apart. */
export interface PreparedRequest {
  /** The model the caller named. */
  readonly model: string;
  readonly stream: boolean;
  /**
   * The vendor-neutral request as JSON text of an object, without `model`, `stream` and `stream_options`. Unknown fields
   * are in it: they pass through to the vendor.
   */
  readonly request: string;
  /** True when the request holds image, audio or file data, which travels as a blob whatever its size. */
  readonly hasMedia: boolean;
  /** What the view needs of the request later; small, JSON. */
  readonly viewOptions: Record<string, unknown>;
}

/**
 * Reads and checks a body. Pure, so that it can run in another thread for large bodies.
 * @throws ApiError 400 that names the field at fault.
 */
export type Prepare = (body: Uint8Array) => PreparedRequest;
