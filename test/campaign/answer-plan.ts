import type { SeededRandom } from '../support/seeded-random.ts';

/** What the vendor does with one request. It travels in the prompt, so that vendor and client need not know each other. */
export interface AnswerPlan {
  /** Names the request; the vendor, the client and the ledger know it by this. */
  readonly marker: string;
  readonly tokens: number;
  /** Between two tokens, in ms; of a video how long it takes. */
  readonly gapMs: number;
  readonly firstMs: number;
  readonly writing: 'one_write' | 'event_a_write' | 'byte_by_byte';
  /** What the first event of a stream brings: the role alone, or the first token with it. */
  readonly opening: 'role' | 'token';
  /** Whether the vendor reports usage. */
  readonly usage: boolean;
  /** `whole`; `cut`: the connection breaks in the middle; `unfinished`: it ends without the last event. */
  readonly ending: 'whole' | 'cut' | 'unfinished';
  /** Characters of filling in the prompt: long requests travel as blobs. */
  readonly filling: number;
}

const pattern = /#(?<marker>[a-z0-9-]+);t=(\d+);g=(\d+);f=(\d+);w=(\w+);u=([01]);e=(\w+);p=(\d+);o=(\w+)#/;

/** The plan as text of a prompt. */
export function planText(plan: AnswerPlan): string {
  const { marker, tokens, gapMs, firstMs, writing, usage, ending, filling, opening } = plan;
  const text = `#${marker};t=${tokens};g=${gapMs};f=${firstMs};w=${writing};u=${usage ? 1 : 0};e=${ending};p=${filling};o=${opening}#`;
  return text + 'x'.repeat(filling);
}

/** The plan in a request of the gateway's; undefined where there is none. */
export function readPlan(request: string): AnswerPlan | undefined {
  const match = pattern.exec(request);
  if (match === null) return undefined;
  const [, marker, tokens, gapMs, firstMs, writing, usage, ending, filling, opening] = match;
  return {
    marker: marker as string,
    tokens: Number(tokens),
    gapMs: Number(gapMs),
    firstMs: Number(firstMs),
    writing: writing as AnswerPlan['writing'],
    usage: usage === '1',
    ending: ending as AnswerPlan['ending'],
    filling: Number(filling),
    opening: opening as AnswerPlan['opening'],
  };
}

/** What one token says: whose it is, of which call and at which place, so that none can be taken for another. */
export function tokenAt(call: number, index: number): string {
  return ` c${call}t${index}`;
}

/** How many tokens a call's answer has. No two calls answer alike: what is made of several of them is no call's answer. */
export function tokenCount({ tokens }: AnswerPlan, call: number): number {
  return tokens + 3 * (call - 1);
}

/** Tokens that the vendor says it has read, different from request to request. */
export function promptTokens({ marker }: AnswerPlan): number {
  let sum = 0;
  for (const character of marker) sum = (sum * 31 + character.charCodeAt(0)) % 13;
  return 5 + sum;
}

/** Draws an answer: short ones and long, in every way of writing, some of which break. */
export function drawPlan(random: SeededRandom, marker: string): AnswerPlan {
  const writing = random.weighted<AnswerPlan['writing']>([
    [3, 'one_write'],
    [6, 'event_a_write'],
    [1, 'byte_by_byte'],
  ]);
  const tokens = random.weighted([
    [2, random.int(1, 3)],
    [6, random.int(5, 40)],
    [1, random.int(60, 150)],
  ]);
  return {
    marker,
    tokens: writing === 'byte_by_byte' ? Math.min(tokens, 20) : tokens,
    gapMs: writing === 'one_write' ? 0 : random.pick([0, 2, 10, 30, 60]),
    firstMs: random.weighted([
      [5, random.int(0, 60)],
      [2, random.int(100, 600)],
      [1, random.int(1000, 3000)],
    ]),
    writing,
    opening: random.pick(['role', 'token']),
    usage: random.chance(0.8),
    ending: random.weighted<AnswerPlan['ending']>([
      [92, 'whole'],
      [5, 'cut'],
      [3, 'unfinished'],
    ]),
    filling: random.chance(0.06) ? 70_000 : random.int(0, 200),
  };
}
