import assert from 'node:assert/strict';
import type { ServerResponse } from 'node:http';
import { describe, it } from 'node:test';
import { chatCompletions } from '../../../api/endpoints/chat/chat-completions.ts';
import { parseChat } from '../../../api/endpoints/chat/parse-chat.ts';
import { completions } from '../../../api/endpoints/completions/completions.ts';
import { messages } from '../../../api/endpoints/messages/messages.ts';
import { parseResponse } from '../../../api/endpoints/responses/parse-response.ts';
import { responseView } from '../../../api/endpoints/responses/response-view.ts';
import type { View, ViewedJob } from '../../../api/replies/view.ts';
import type { RoutedModel } from '../../../shared/catalogue/catalogue.ts';
import { ApiError } from '../../../shared/errors.ts';
import type { Frame } from '../../../shared/jobs/append.ts';
import { executeChat } from '../../../workers/execute/execute.ts';
import type { Vendor } from '../../../workers/vendors/vendor.ts';
import { pathsOf, replaced } from '../../support/replaced-values.ts';
import { throughLog } from '../../support/through-log.ts';
import { callOf, collect, sendJson } from './fixture-vendor.ts';
import { VendorBench } from './vendor-bench.ts';

/** What may stand where something else is expected. The last ones can be made no text and no number. */
const hostile: readonly unknown[] = [
  ...[null, true, 1e308, '', 'x', '__proto__', [], {}, [null], [0], { type: null }],
  ...[{ toString: null, valueOf: null }, [{ toString: null, valueOf: null }]],
];

const asked = { model: 'm', stream: true };
const chat = parseChat(
  Buffer.from(
    JSON.stringify({ ...asked, messages: [{ role: 'user', content: 'Hi' }], stream_options: { include_usage: true } }),
  ),
);
const response = parseResponse(Buffer.from(JSON.stringify({ ...asked, input: 'Hi' })));

/** The views of a chat's answer by endpoint, each with a request. */
const views = {
  'chat.completions': { view: chatCompletions.view, viewOptions: chat.viewOptions, request: String(chat.request) },
  completions: { view: completions.view, viewOptions: {}, request: '{"prompt":"Hi"}' },
  messages: {
    view: messages.view,
    viewOptions: { hidesThinking: false, stopSequences: [] },
    request: String(chat.request),
  },
  responses: { view: responseView, viewOptions: response.viewOptions, request: String(response.request) },
} as const satisfies Record<string, { view: View; viewOptions: object; request: string }>;

/** How a vendor answers, with something in every place that is read. */
export interface HostileAnswers {
  readonly create: (baseUrl: string) => Vendor;
  readonly row: RoutedModel;
  /** The body of a whole answer. */
  readonly whole: object;
  /** The events of a stream. */
  readonly events: readonly object[];
  readonly sendEvents: (response: ServerResponse, events: readonly unknown[]) => void;
  readonly endpoints: readonly (keyof typeof views)[];
}

/**
 * Declares tests that a vendor's answer with an arbitrary value in any one position is shown by the endpoints' views, or refused by
 * the worker as the vendor's error.
 */
export function showsHostileAnswers(name: string, answers: HostileAnswers): void {
  describe(`answers of ${name} with arbitrary values in any field`, () => {
    const bench = new VendorBench(answers.create);
    for (const endpoint of answers.endpoints) {
      for (const stream of [true, false]) {
        const kind = stream ? 'streamed' : 'held';
        it(`${endpoint} shows a ${kind} answer of ${name} with an arbitrary value in any one position, or an error of the vendor`, async () => {
          const failed: string[] = [];
          let shown = 0;
          const sample = stream ? answers.events : answers.whole;
          for (const path of pathsOf(sample)) {
            if (path.length === 0 && stream) continue;
            for (const value of hostile) {
              const changed = replaced(sample, path, value);
              bench.server.answer((reply) => {
                if (stream) answers.sendEvents(reply, changed as readonly unknown[]);
                else sendJson(reply, 200, JSON.stringify(changed));
              });
              try {
                if (await isShown(bench.vendor, answers.row, endpoint, stream)) shown++;
              } catch (error) {
                failed.push(`${path.join('.')} = ${JSON.stringify(value)}: ${(error as Error).stack}`);
              }
            }
          }
          assert.equal(failed.length, 0, `${failed.length} failed: ${failed.slice(0, 5).join('\n')}`);
          assert.ok(shown > 100, `${shown} were shown`);
        });
      }
    }
  });
}

/** Whether the answer is shown; not, if the worker refuses it. */
async function isShown(
  vendor: Vendor,
  row: RoutedModel,
  endpoint: keyof typeof views,
  stream: boolean,
): Promise<boolean> {
  const { view, viewOptions, request } = views[endpoint];
  const sink = collect();
  let frames: Frame[];
  try {
    const call = callOf({ stream, model: 'm', request });
    const end = await executeChat({ vendor, row, endpoint, keep: false, call, sink });
    frames = throughLog([...sink.frames, { type: 'end', text: end.body }], [1]);
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    return false;
  }
  const job: ViewedJob = {
    id: '0197a3b0c4d57e8f9a0b1c2d3e4f5a6b',
    model: 'm',
    createdAt: 1,
    viewOptions,
    link: String,
  };
  const shown: View = view;
  frames.flatMap(shown.stream(job));
  shown.held(job, frames);
  shown.final?.(frames, job).flatMap(shown.stream(job));
  return true;
}
