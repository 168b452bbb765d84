/** A vendor and its key. */
export interface VendorOptions {
  readonly name: string;
  /** Including the version: `https://api.bfl.ai/v1`. */
  readonly baseUrl: string;
  readonly apiKey: string;
}
