import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { type AnswerPlan, promptTokens, readPlan, tokenAt, tokenCount } from './answer-plan.ts';

/** One call as the vendor knows it: the truth that everything else is held against. */
export interface VendorCall {
  readonly plan: AnswerPlan;
  readonly kind: 'chat' | 'video';
  /** From 1, among the calls of its marker. */
  readonly number: number;
  readonly at: number;
  /** Tokens that were written. */
  tokens: number;
  /** `completed`: everything was written, its end too. `broken`: the vendor has broken it. `left`: the gateway has. */
  ended: 'completed' | 'broken' | 'left' | undefined;
  /** The answer's end was handed to the connection: whoever leaves after that may have read all of it. */
  hasSaidEnd: boolean;
  endedAt: number | undefined;
  /** When the file of a video was asked for. */
  readonly fetchedAt: number[];
  /** As it was told to the gateway. */
  usage: { prompt_tokens: number; completion_tokens: number; total_tokens: number } | undefined;
}

interface Exchange {
  readonly response: ServerResponse;
  readonly call: VendorCall;
}

/** A vendor that speaks OpenAI's wire, does what the plan in each prompt says, and keeps account of it. */
export class CampaignVendor {
  /** Every call, by its marker. */
  readonly calls = new Map<string, VendorCall[]>();
  readonly #server: Server;

  private constructor() {
    this.#server = createServer((request, response) => void this.#handle(request, response));
  }

  static async start(): Promise<CampaignVendor> {
    const vendor = new CampaignVendor();
    vendor.#server.listen(0, '127.0.0.1');
    await once(vendor.#server, 'listening');
    return vendor;
  }

  get baseUrl(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/v1`;
  }

  /** Calls that have not ended. A video ends when its file is fetched, which nobody may do. */
  get open(): number {
    const calls = [...this.calls.values()].flat();
    return calls.filter(({ kind, ended }) => kind === 'chat' && ended === undefined).length;
  }

  async close(): Promise<void> {
    this.#server.close();
    this.#server.closeAllConnections();
    await once(this.#server, 'close');
  }

  async #handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    response.on('error', () => undefined);
    try {
      const parts: Buffer[] = [];
      for await (const part of request) parts.push(part);
      await this.#answer(request, Buffer.concat(parts).toString(), response);
    } catch {
      // The gateway has left, or its worker was killed.
      response.destroy();
    }
  }

  async #answer({ method, url = '' }: IncomingMessage, body: string, response: ServerResponse): Promise<void> {
    const path = url.split('?')[0] as string;
    if (method === 'POST' && path === '/v1/chat/completions') {
      const exchange = { response, call: this.#begin('chat', body, response) };
      if (JSON.parse(body).stream === true) await stream(exchange);
      else await hold(exchange);
    } else if (method === 'POST' && path === '/v1/videos') {
      const call = this.#begin('video', body, response);
      await delay(call.plan.firstMs);
      sendJson(response, 200, videoObject(call));
    } else if (path.startsWith('/v1/videos/')) {
      this.#task(method, path, url, response);
    } else {
      sendJson(response, 404, { error: { message: 'no such path', type: 'invalid_request_error' } });
    }
  }

  #begin(kind: VendorCall['kind'], body: string, response: ServerResponse): VendorCall {
    const plan = readPlan(body);
    if (plan === undefined) throw new Error('a request without a plan');
    const known = this.calls.get(plan.marker) ?? [];
    const call: VendorCall = {
      ...{ plan, kind, number: known.length + 1, at: Date.now() },
      ...{ tokens: 0, ended: undefined, hasSaidEnd: false, endedAt: undefined, fetchedAt: [], usage: undefined },
    };
    this.calls.set(plan.marker, [...known, call]);
    response.on('close', () => {
      if (kind === 'chat') end(call, 'left');
    });
    return call;
  }

  /** What was begun is asked after by `<marker>_<call>`. */
  #task(method: string | undefined, path: string, url: string, response: ServerResponse): void {
    const [marker, number] = (path.split('/')[3] ?? '').split('.') as [string, string];
    const call = this.calls.get(marker)?.[Number(number) - 1];
    const isContent = path.endsWith('/content');
    if (call === undefined || (isContent && !url.endsWith('variant=video'))) {
      sendJson(response, 404, { error: { message: 'no such video, or no such variant of it' } });
    } else if (method === 'DELETE') {
      end(call, 'left');
      sendJson(response, 200, { id: taskId(call), object: 'video.deleted', deleted: true });
    } else if (isContent) {
      call.fetchedAt.push(Date.now());
      response.writeHead(200, { 'content-type': 'video/mp4' });
      response.end(videoBytes(call.plan.marker, call.number), () => end(call, 'completed'));
    } else {
      sendJson(response, 200, videoObject(call));
    }
  }
}

/** What a video of this call is. */
export function videoBytes(marker: string, call: number): Buffer {
  return Buffer.from(`video of ${marker}, call ${call}. `.repeat(120));
}

function end(call: VendorCall, how: NonNullable<VendorCall['ended']>): void {
  if (call.ended !== undefined) return;
  call.ended = how;
  call.endedAt = Date.now();
}

function taskId({ plan, number }: VendorCall): string {
  return `${plan.marker}.${number}`;
}

function videoObject(call: VendorCall): object {
  const { plan, at } = call;
  const done = Math.min(1, (Date.now() - at) / Math.max(1, plan.tokens * 40));
  const hasFailed = done === 1 && plan.ending !== 'whole';
  if (hasFailed) end(call, 'broken');
  const status = hasFailed ? 'failed' : done === 1 ? 'completed' : 'in_progress';
  return {
    ...{ id: taskId(call), object: 'video', status, progress: Math.floor(done * 100), seconds: '4', size: '1280x720' },
    error: hasFailed ? { code: 'processing_error', message: 'It could not be made.' } : null,
  };
}

function sendJson(response: ServerResponse, status: number, body: object): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
}

function usageOf(call: VendorCall): NonNullable<VendorCall['usage']> {
  const [prompt, completion] = [promptTokens(call.plan), tokenCount(call.plan, call.number)];
  call.usage = { prompt_tokens: prompt, completion_tokens: completion, total_tokens: prompt + completion };
  return call.usage;
}

async function hold({ response, call }: Exchange): Promise<void> {
  const { plan, number } = call;
  await delay(plan.firstMs + Math.min(2000, plan.tokens * plan.gapMs));
  if (response.destroyed) return;
  const count = tokenCount(plan, number);
  const content = Array.from({ length: count }, (_, index) => tokenAt(number, index)).join('');
  const body = JSON.stringify({
    ...{ id: `chatcmpl-${plan.marker}`, object: 'chat.completion', created: 1_700_000_000, model: 'vendor' },
    choices: [{ index: 0, message: { role: 'assistant', content, refusal: null }, finish_reason: 'stop' }],
    ...(plan.usage && { usage: usageOf(call) }),
  });
  response.writeHead(200, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) });
  if (plan.ending !== 'whole') {
    response.write(body.slice(0, body.length / 2));
    return breakOff(response, call);
  }
  call.tokens = count;
  call.hasSaidEnd = true;
  response.end(body, () => end(call, 'completed'));
}

async function stream({ response, call }: Exchange): Promise<void> {
  const { plan } = call;
  await delay(plan.firstMs);
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  const isWhole = plan.ending === 'whole';
  const planned = tokenCount(plan, call.number);
  const count = isWhole ? planned : Math.floor(planned / 2);
  const opening = plan.opening === 'token' && count > 0 ? 1 : 0;
  const events = [chunk(call, { role: 'assistant', content: opening > 0 ? tokenAt(call.number, 0) : '' }, null)];
  for (let index = opening; index < count; index++)
    events.push(chunk(call, { content: tokenAt(call.number, index) }, null));
  if (isWhole) {
    events.push(chunk(call, {}, 'stop'));
    if (plan.usage) events.push(`data: ${JSON.stringify({ ...head(call), choices: [], usage: usageOf(call) })}\n\n`);
    events.push('data: [DONE]\n\n');
  }
  if (plan.writing === 'one_write') {
    call.tokens = count;
    call.hasSaidEnd = isWhole;
    response.write(events.join(''));
  } else {
    for (const [index, event] of events.entries()) {
      if (response.destroyed) return;
      call.tokens = Math.min(count, index + opening);
      if (plan.writing === 'event_a_write') response.write(event);
      else for (const byte of Buffer.from(event)) response.write(Buffer.of(byte));
      call.hasSaidEnd = isWhole && index === events.length - 1;
      if (plan.gapMs > 0) await delay(plan.gapMs);
    }
  }
  if (plan.ending === 'cut') return breakOff(response, call);
  response.end(() => end(call, isWhole ? 'completed' : 'broken'));
}

function breakOff(response: ServerResponse, call: VendorCall): void {
  end(call, 'broken');
  response.socket?.resetAndDestroy();
}

function head({ plan }: VendorCall): object {
  return { id: `chatcmpl-${plan.marker}`, object: 'chat.completion.chunk', created: 1_700_000_000, model: 'vendor' };
}

function chunk(call: VendorCall, delta: object, finishReason: string | null): string {
  return `data: ${JSON.stringify({ ...head(call), choices: [{ index: 0, delta, finish_reason: finishReason }] })}\n\n`;
}
