/** A vendor and the key to it. */
export interface VendorOptions {
  readonly name: string;
  /** Up to and with the version: `https://api.bfl.ai/v1`. */
  readonly baseUrl: string;
  readonly apiKey: string;
}
