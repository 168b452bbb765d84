/** A streamed event without its `sequence_number`. https://platform.openai.com/docs/api-reference/responses-streaming */
export interface ResponseEvent {
  readonly type: string;
  readonly [field: string]: unknown;
}

/** Receives the events of an item in order. */
export type EmitEvent = (event: ResponseEvent) => void;
