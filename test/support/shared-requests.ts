import assert from 'node:assert/strict';
import type OpenAI from 'openai';
import { eventually } from './eventually.ts';
import { GatedVendor } from './gated-vendor.ts';
import type { GatewayOptions, TestGateway } from './gateway.ts';
import { JobRecords } from './job-records.ts';
import { makeApiKey } from './make-api-key.ts';
import { MetricsPage } from './metrics-page.ts';
import { sseEvents, textOf } from './sse-events.ts';

/** How a request is sent. */
export interface Asking {
  readonly headers?: Record<string, string>;
  /** Which api gets it: 0 is the first. */
  readonly api?: number;
  readonly path?: string;
  readonly signal?: AbortSignal;
}

/** A request whose client can leave. */
export interface OpenRequest {
  readonly response: Response;
  /** Breaks the connection. */
  leave(): void;
}

/** What became of a request that wanted to share its job. */
export function flightOf({ headers }: Response): string | null {
  return headers.get('x-sluice-single-flight');
}

/** The text of a streamed answer, once it has ended. */
export async function textOfStream(response: Response): Promise<string> {
  return textOf(sseEvents(await response.text()));
}

/** The text of a held answer. */
export async function heldText(response: Response): Promise<string | null | undefined> {
  return ((await response.json()) as OpenAI.ChatCompletion).choices[0]?.message.content;
}

/** A gateway of two apis whose vendor answers when a test lets it, and requests that share their jobs. */
export class SharedRequests {
  readonly vendor: GatedVendor;
  readonly records: JobRecords;

  private constructor(vendor: GatedVendor, records: JobRecords) {
    this.vendor = vendor;
    this.records = records;
  }

  static async start(options: Omit<GatewayOptions, 'configuration'> = {}): Promise<SharedRequests> {
    const vendor = await GatedVendor.start();
    const { configuration } = vendor;
    try {
      return new SharedRequests(vendor, await JobRecords.start({ apis: 2, ...options, configuration }));
    } catch (error) {
      await vendor.close();
      throw error;
    }
  }

  async stop(): Promise<void> {
    await this.records.stop();
    await this.vendor.close();
  }

  get gateway(): TestGateway {
    return this.records.gateway;
  }

  /** Headers of a new key with these settings. */
  async bearer(...settings: [Parameters<typeof makeApiKey>[1]?]): Promise<Record<string, string>> {
    return { authorization: `Bearer ${await makeApiKey(this.gateway, ...settings)}` };
  }

  /** Sends a request; of a stream it resolves once the first half of the answer is there. */
  ask(body: object, { headers = {}, api = 0, ...more }: Asking = {}): Promise<Response> {
    const url = this.gateway.apis[api]?.url as string;
    return this.records.post(body, { 'x-sluice-single-flight': '1', ...headers }, { url, ...more });
  }

  /** The same with a client that can leave. An api on a busy machine refuses some at first. */
  async open(body: object, asking: Asking = {}): Promise<OpenRequest> {
    const controller = new AbortController();
    return await eventually(async () => {
      const response = await this.ask(body, { ...asking, signal: controller.signal });
      assert.equal(response.status, 200, response.ok ? '' : await response.text());
      return { response, leave: () => controller.abort() };
    }, 60_000);
  }

  /** Waits until the vendor has got so many calls of a test. */
  async untilCalled(user: string, count = 1): Promise<void> {
    await eventually(() => assert.equal(this.vendor.callsOf(user).length, count));
  }

  /** Waits until the first call of a test has ended in this way, the only one. */
  async untilEnded(user: string, ended: 'answered' | 'aborted', ms?: number): Promise<void> {
    await eventually(
      () =>
        assert.deepEqual(
          this.vendor.callsOf(user).map((call) => call.ended),
          [ended],
        ),
      ms,
    );
  }

  /** Lets the vendor answer all calls of a test, now and later. */
  release(user: string): void {
    for (const call of this.vendor.callsOf(user)) call.release();
  }

  /** Requests that admission has given the job of another. */
  async replays(): Promise<number> {
    const pages = await Promise.all(this.gateway.apis.map(({ url }) => MetricsPage.read(url)));
    return pages.reduce((sum, page) => sum + page.sum('sluice_admissions_total', 'verdict="replay"'), 0);
  }

  /** Sends held requests, and waits until admission has given them the job of another. */
  async join(body: object, count: number, asking: Asking = {}): Promise<Promise<Response>[]> {
    const before = await this.replays();
    const asked = Array.from({ length: count }, () => this.ask(body, asking));
    for (const one of asked) one.catch(() => undefined);
    await eventually(async () => assert.equal((await this.replays()) - before, count));
    return asked;
  }
}
