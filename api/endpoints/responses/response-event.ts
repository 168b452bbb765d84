/** An event of a response's stream, all but its `sequence_number`. https://platform.openai.com/docs/api-reference/responses-streaming */
export interface ResponseEvent {
  readonly type: string;
  readonly [field: string]: unknown;
}

/** Where the events of an item go, in order. */
export type EmitEvent = (event: ResponseEvent) => void;
