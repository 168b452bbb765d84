/** Tokens as counted by Anthropic: those of the cache are not part of `input_tokens`. */
export interface MessageUsage {
  readonly input_tokens: number;
  readonly cache_creation_input_tokens: number;
  readonly cache_read_input_tokens: number;
  readonly output_tokens: number;
  readonly output_tokens_details: { readonly thinking_tokens: number } | null;
  readonly server_tool_use: null;
  /** The tokens written to the cache by its lifetimes, if the vendor reports them; in a stream at its end, as all counts. */
  readonly cache_creation?: CacheCreation | null;
  /** An extension of Anthropic's API: the gateway has counted, as the vendor did not. */
  readonly estimated?: true;
}

/** Tokens written to the cache by its lifetimes. */
export interface CacheCreation {
  readonly ephemeral_5m_input_tokens: number;
  readonly ephemeral_1h_input_tokens: number;
}

/** A block of an answer. A tool's input is an object in a whole message, and empty at the start of a streamed block. */
export type ContentBlock =
  // Anthropic's type also allows null, which the AI SDK does not accept.
  | { readonly type: 'text'; readonly text: string; readonly citations: readonly [] }
  | { readonly type: 'thinking'; readonly thinking: string; readonly signature: string }
  | { readonly type: 'redacted_thinking'; readonly data: string }
  | {
      readonly type: 'tool_use';
      readonly id: string;
      readonly name: string;
      readonly input: unknown;
      readonly caller: { readonly type: 'direct' };
    };

export type ContentDelta =
  | { readonly type: 'text_delta'; readonly text: string }
  | { readonly type: 'thinking_delta'; readonly thinking: string }
  | { readonly type: 'signature_delta'; readonly signature: string }
  | { readonly type: 'input_json_delta'; readonly partial_json: string };

/** Why an answer was refused: what its vendor says of it. */
export interface RefusalDetails {
  readonly type: 'refusal';
  readonly category: string | null;
  readonly explanation: string | null;
}

/** How an answer ended. */
export interface MessageStop {
  readonly stop_reason:
    | 'end_turn'
    | 'max_tokens'
    | 'model_context_window_exceeded'
    | 'stop_sequence'
    | 'tool_use'
    | 'refusal';
  readonly stop_sequence: string | null;
  readonly stop_details: RefusalDetails | null;
  readonly container: null;
}

/** A message, whole or at the start of a stream. */
export interface Message extends Omit<MessageStop, 'stop_reason'> {
  readonly id: string;
  readonly type: 'message';
  readonly role: 'assistant';
  readonly model: string;
  readonly content: readonly ContentBlock[];
  readonly stop_reason: MessageStop['stop_reason'] | null;
  readonly diagnostics: null;
  readonly usage: MessageUsage & {
    readonly cache_creation: CacheCreation | null;
    readonly inference_geo: null;
    readonly service_tier: 'standard' | 'priority' | 'batch' | null;
    readonly speed: null;
  };
}

/** The events of a streamed message, in order (https://docs.claude.com/en/docs/build-with-claude/streaming). */
export type MessageEvent =
  | { readonly type: 'message_start'; readonly message: Message }
  | { readonly type: 'content_block_start'; readonly index: number; readonly content_block: ContentBlock }
  | { readonly type: 'content_block_delta'; readonly index: number; readonly delta: ContentDelta }
  | { readonly type: 'content_block_stop'; readonly index: number }
  | { readonly type: 'message_delta'; readonly delta: MessageStop; readonly usage: MessageUsage }
  | { readonly type: 'message_stop' };
