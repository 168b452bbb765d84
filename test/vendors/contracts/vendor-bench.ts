import assert from 'node:assert/strict';
import type { ServerResponse } from 'node:http';
import { after, before } from 'node:test';
import { type FixtureVendor, type ReceivedRequest, startFixtureVendor } from './fixture-vendor.ts';

/** Answers one request of a vendor's wire; false leaves it to the next. */
export type Wire = (request: ReceivedRequest, response: ServerResponse) => boolean;

/** A vendor and its server, which are open while the tests run of the suite that makes the bench. */
export class VendorBench<Adapter extends { close(): Promise<void> }> {
  private opened: { readonly server: FixtureVendor; readonly vendor: Adapter } | undefined;

  /** To be called where hooks are declared: in a `describe`, or in a file for all of its suites. */
  constructor(create: (baseUrl: string) => Adapter) {
    before(async () => {
      const server = await startFixtureVendor();
      this.opened = { server, vendor: create(server.baseUrl) };
    });
    after(async () => {
      await this.vendor.close();
      await this.server.close();
    });
  }

  get server(): FixtureVendor {
    return this.opened?.server ?? assert.fail('the suite does not run yet');
  }

  get vendor(): Adapter {
    return this.opened?.vendor ?? assert.fail('the suite does not run yet');
  }

  get origin(): string {
    return new URL(this.server.baseUrl).origin;
  }

  get posts(): ReceivedRequest[] {
    return this.server.requests.filter(({ method }) => method === 'POST');
  }

  /** The JSON of the last creation. */
  get posted(): unknown {
    return JSON.parse(this.posts.at(-1)?.body ?? '');
  }
}
