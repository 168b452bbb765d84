/**
 * A response job: a job of a chat model, made by `POST /v1/responses`.
 *
 * Its request is the caller's own (OpenAI's `CreateResponse`) without `model`, `stream` and what is the gateway's business
 * (`store`, `background`, `previous_response_id`, …), its `input` always a list of items: those of earlier turns first. It
 * comes first in the JSON text, so that earlier turns can be put before it without parsing it.
 *
 * Its frames are of one of two kinds. A vendor without the Responses API runs it as a chat, and the frames are those of a
 * chat. A vendor that has it natively sends:
 * - `delta`: an event of OpenAI's stream as the vendor sent it (`{"type":"response.output_text.delta",…}`) without
 *   `sequence_number`; those about the response as a whole (`response.created`, `.queued`, `.in_progress`, and the
 *   terminal ones) are left out;
 * - `end`: `{"response": {…}}`, see `NativeResponseEnd`.
 *
 * The `end` of either kind may say when the vendor was done, in `completed_at` (seconds since 1970): a view has no clock,
 * and a stream shown again must say the same.
 */
export interface ResponseJob {
  readonly input: readonly ResponseItem[];
  readonly [field: string]: unknown;
}

/** An input or output item; OpenAI's `InputItem` or `OutputItem`. */
export interface ResponseItem {
  readonly type?: string;
  readonly id?: string;
  readonly [field: string]: unknown;
}

/** Items that tell what hosted tools did in earlier turns: a chat does without them, as the model's words after them remain. */
export const hostedCalls: ReadonlySet<unknown> = new Set([
  'web_search_call',
  'file_search_call',
  'code_interpreter_call',
  'image_generation_call',
  'mcp_list_tools',
  'mcp_call',
]);

/** The `end` frame of a native response: OpenAI's `Response`, as far as the vendor decides it. */
export interface NativeResponseEnd {
  readonly response: {
    readonly status: 'completed' | 'incomplete';
    readonly incomplete_details: { readonly reason: string } | null;
    /** The items; left out after a stream, whose `response.output_item.done` events were them. */
    readonly output?: readonly ResponseItem[];
    readonly usage: Readonly<Record<string, unknown>> | null;
    /** `service_tier` and what else the vendor says; never ids, times, or what the request itself said. */
    readonly [field: string]: unknown;
  };
  readonly completed_at?: number;
}

/** Type, vendor's part, job: `msg_0a1b_0199…`. */
const itemId = /^([a-z]+_.*)_([0-9a-f]{32})$/;

/** The id under which callers know an item of a job's output: the job can be found by it. */
export function ownItemId(vendorsId: string, jobId: string): string {
  return `${vendorsId}_${jobId}`;
}

/** The parts of an id that `ownItemId` made; undefined for any other. */
export function readItemId(id: string): { readonly vendorsId: string; readonly jobId: string } | undefined {
  const match = itemId.exec(id);
  return match === null ? undefined : { vendorsId: match[1] as string, jobId: match[2] as string };
}
