import type { ServerResponse } from 'node:http';
import {
  type FixtureVendor,
  type ReceivedRequest,
  sendJson,
  startFixtureVendor,
} from '../vendors/contracts/fixture-vendor.ts';
import { completion, errorBody } from '../vendors/recorded/recorded-openai.ts';

/** What a vendor allows. */
export interface VendorAllowance {
  /** Requests in a window. */
  readonly requests?: number;
  /** Tokens in a window. */
  readonly tokens?: number;
  /** Length of the window, which slides. */
  readonly windowMs: number;
  /** Calls at a time. */
  readonly parallel?: number;
  /** Tokens that each call uses. */
  readonly tokensOfCall?: number;
  /** How long a call takes. */
  readonly callMs?: number;
  /** Headers of each answer. */
  readonly headers?: () => Record<string, string>;
}

/** A vendor that keeps count, and refuses what exceeds its limits. */
export class LimitedVendor {
  readonly server: FixtureVendor;
  readonly #allowance: VendorAllowance;
  /** When each call was accepted, in ms of `performance.now()`. */
  readonly accepted: number[] = [];
  /** The same for those it refused. */
  readonly refused: number[] = [];
  /** Model of each call, accepted or not. */
  readonly models: string[] = [];
  /** Prompt of each accepted call. */
  readonly prompts: string[] = [];
  running = 0;
  mostRunning = 0;
  #oldest = 0;

  private constructor(server: FixtureVendor, allowance: VendorAllowance) {
    this.server = server;
    this.#allowance = allowance;
  }

  static async start(allowance: VendorAllowance): Promise<LimitedVendor> {
    const server = await startFixtureVendor();
    const vendor = new LimitedVendor(server, allowance);
    server.answer((response, request) => vendor.#answer(response, request));
    return vendor;
  }

  close(): Promise<void> {
    return this.server.close();
  }

  #answer(response: ServerResponse, { body }: ReceivedRequest): void {
    const { requests, tokens, windowMs, parallel, tokensOfCall = 100, callMs = 20, headers } = this.#allowance;
    const { model, messages } = JSON.parse(body) as { model: string; messages: { content: string }[] };
    this.models.push(model);
    const now = performance.now();
    while ((this.accepted[this.#oldest] ?? now) <= now - windowMs) this.#oldest++;
    const inWindow = this.accepted.length - this.#oldest;
    const exceeds =
      inWindow >= (requests ?? Number.POSITIVE_INFINITY) ||
      (inWindow + 1) * tokensOfCall > (tokens ?? Number.POSITIVE_INFINITY) ||
      this.running >= (parallel ?? Number.POSITIVE_INFINITY);
    if (exceeds) {
      this.refused.push(now);
      sendJson(response, 429, errorBody('limit', 'rate_limit_exceeded'), headers?.() ?? {});
      return;
    }
    this.accepted.push(now);
    this.prompts.push(messages[0]?.content ?? '');
    this.mostRunning = Math.max(this.mostRunning, ++this.running);
    const message = { role: 'assistant', content: 'fine' };
    const choices = [{ index: 0, message, logprobs: null, finish_reason: 'stop' }];
    const usage = { prompt_tokens: 1, completion_tokens: tokensOfCall - 1, total_tokens: tokensOfCall };
    // The longest are a minute: they keep no process whose server is closed.
    setTimeout(() => {
      this.running--;
      sendJson(response, 200, JSON.stringify({ ...completion, choices, usage }), headers?.() ?? {});
    }, callMs).unref();
  }
}
