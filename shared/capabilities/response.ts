/**
 * A response job: a job of a chat model, created by `POST /v1/responses`.
 *
 * Its request is the caller's own (OpenAI's `CreateResponse`) without `model`, `stream` and the fields the gateway handles
 * (`store`, `background`, `previous_response_id`, …). Its `input` is always a list of items, starting with those of earlier
 * turns. It comes first in the JSON text, so that earlier turns can be prepended without parsing it.
 *
 * Its frames are of one of two kinds. A vendor without the Responses API runs it as a chat, and the frames are those of a chat.
 * A vendor with native support sends:
 * - `delta`: an event of OpenAI's stream as the vendor sent it (`{"type":"response.output_text.delta",…}`) without
 *   `sequence_number`; events about the response as a whole (`response.created`, `.queued`, `.in_progress`, and the terminal
 *   ones) are left out;
 * - `end`: `{"response": {…}}`, see `NativeResponseEnd`.
 *
 * The `end` of either kind may contain the vendor's completion time in `completed_at` (seconds since 1970): a view has no
 * clock, and a replayed stream must show the same time.
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

/** The value of `include` by which a response has its reasoning encrypted. */
export const encryptedReasoning = 'reasoning.encrypted_content';

/** Items that record hosted tool calls of earlier turns: a chat omits them, as the model's text after them remains. */
export const hostedCalls: ReadonlySet<unknown> = new Set([
  'web_search_call',
  'file_search_call',
  'code_interpreter_call',
  'image_generation_call',
  'mcp_list_tools',
  'mcp_call',
]);

/** The `end` frame of a native response: the part of OpenAI's `Response` that the vendor determines. */
export interface NativeResponseEnd {
  readonly response: {
    readonly status: 'completed' | 'incomplete';
    readonly incomplete_details: { readonly reason: string } | null;
    /** The items; left out after a stream, whose `response.output_item.done` events contained them. */
    readonly output?: readonly ResponseItem[];
    readonly usage: Readonly<Record<string, unknown>> | null;
    /** `service_tier` and other fields from the vendor; never ids, times, or fields of the request. */
    readonly [field: string]: unknown;
  };
  readonly completed_at?: number;
}

/** Type, vendor's part, job: `msg_0a1b_0199…`. */
const itemId = /^([a-z]+_.*)_([0-9a-f]{32})$/;

/** The public id of an item in a job's output, which contains the job's id. */
export function ownItemId(vendorsId: string, jobId: string): string {
  return `${vendorsId}_${jobId}`;
}

/** The parts of an id created by `ownItemId`; undefined for any other. */
export function readItemId(id: string): { readonly vendorsId: string; readonly jobId: string } | undefined {
  const match = itemId.exec(id);
  return match === null ? undefined : { vendorsId: match[1] as string, jobId: match[2] as string };
}
