import type { MediaCapability } from '../catalogue/media-fields.ts';

/**
 * Support of a chat request's field at a vendor: `native` (unchanged), `translated` to the vendor's own fields, `ignored` (a
 * hint that changes nothing requested) or `rejected` (leaving it out would change the answer's meaning).
 */
export type FieldSupport = 'native' | 'translated' | 'ignored' | 'rejected';

/**
 * Support of a chat's fields at one vendor, by OpenAI's names; `response_format.json_schema` is the field with that type. A
 * field without an entry has the support of `*`, or is native if that is missing.
 */
export type ChatFieldSupport = Readonly<Record<string, FieldSupport>>;

/** What a vendor of OpenAI's dialect offers, named as the methods of a Vendor are (workers/vendors/vendor.ts). */
export type Offer = 'chat' | 'complete' | 'embed' | 'image' | 'transcribe' | 'speak' | 'respond' | 'video';

/** In what a vendor's chats differ from OpenAI's wire. What is left out is as OpenAI has it. */
export interface ChatDeviations {
  /** Fields by OpenAI's names and what the vendor calls them; `max_completion_tokens` is what it calls the limit. */
  readonly renamed?: Readonly<Record<string, string>>;
  /** `false`: it does not know `stream_options`, and counts every stream's usage unasked. */
  readonly streamOptions?: false;
  /** `false`: it does not know `parallel_tool_calls`, so where one call at a time is wanted, the first of several is passed on. */
  readonly parallelToolCalls?: false;
  /** `false`: it does not know the role `developer`, so those messages go as `system`. */
  readonly developerRole?: false;
  /**
   * Where it says its reasoning: in a field `reasoning`, or among the parts of the content, of the type `thinking`. Left
   * out: in `reasoning_content`.
   */
  readonly reasoning?: 'reasoning' | 'thinking_parts';
  /**
   * Which earlier answers it refuses without their reasoning while it thinks: those with calls of tools, or with tools all. Clients
   * may drop it, so a placeholder stands for it. Left out: none.
   */
  readonly needsReasoning?: 'of_calls' | 'with_tools';
  /** The models, by the vendor's names, that are told not to think by a switch of the vendor's own, as they have no effort `none`. */
  readonly disablesThinking?: RegExp;
  /** That switch, where it is `enable_thinking`, of the value `false`; left out: `thinking`, of the type `disabled`. */
  readonly thinkingSwitch?: 'enable_thinking';
  /**
   * Its limit of output tokens does not count the reasoning. That has a limit of its own, `thinking_budget`, with these models, by
   * the vendor's names; others may pass over it.
   */
  readonly reasoningBudget?: RegExp;
  /** Where it has Google's signatures of calls; left out: in `extra_content`, as Google's own endpoint for OpenAI's clients. */
  readonly signatures?: 'reasoning_details';
  /** `false`: it takes the content of a message as one text, not as parts, so parts that are texts are joined. */
  readonly textParts?: false;
  /** `true`: it takes no ids of calls but those of nine letters and digits, as its own are. */
  readonly shortCallIds?: true;
  /** `false`: some of its models refuse a user right behind a tool's result, so the assistant says a word between them. */
  readonly userAfterTool?: false;
  /** `false`: it refuses messages and tools with fields that OpenAI's document does not have (`cache_control`). */
  readonly hints?: false;
  /** Those of the fields that it refuses or does nothing with. */
  readonly fields?: ChatFieldSupport;
}

/** Support of a capability's fields; a function if it depends on the model, by its vendor's name. */
export type MediaFieldSupport = ChatFieldSupport | ((model: string) => ChatFieldSupport);

/** What docs/vendors.md says of a vendor, beside what follows from its description. */
export interface VendorDocumentation {
  /** What it does here, where its row does not say it (`offers`), or in other words. */
  readonly does?: string;
  /** How it is turned on, where its setting alone does not say it. */
  readonly turnedOnBy?: string;
  /** What the adapter, or the row, was checked by. */
  readonly checkedBy: string;
}

/** Everything the gateway knows of a vendor; its adapter is the folder of the same name in workers/vendors. */
export interface VendorDescription {
  /** In routes, logs and settings: lower case; `lm-studio` is set up by `LM_STUDIO_BASE_URL`. */
  readonly name: string;
  /** Up to and with the version. */
  readonly baseUrl: string;
  /** `true`: every account has an address of its own, which must be set; `baseUrl` only shows its form. */
  readonly needsBaseUrl?: true;
  /** `false`: it is on when its base URL is set, since it takes callers without a key. */
  readonly needsKey: boolean;
  /** What a key looks like, where that is known: `pair` is `ACCESS_KEY:SECRET_KEY`. */
  readonly keyForm?: 'pair';
  /** `true`: any model can be asked for as `vendor/model`, since only the vendor itself knows which ones it has. */
  readonly isOpen?: true;
  /** For the dialect `openai`: what of it the vendor documents. */
  readonly offers?: readonly Offer[];
  /**
   * For the dialect `openai`: the path that is asked for to see whether the vendor takes a key; `false`: it has none that asks
   * for the key. Left out: `/models`.
   */
  readonly keyCheck?: string | false;
  /** Of the dialect `azure` the hints alone. */
  readonly chat?: ChatDeviations;
  /** Support of a chat's fields, for a vendor that a chat is translated for. */
  readonly chatFields?: ChatFieldSupport;
  /**
   * Support of the fields of requests other than chats, for a vendor that does not speak OpenAI's wire, and for one that does what
   * it ignores of embeddings. A field without an entry has the support of `*`, or is passed on. Fields of a vendor's own that must
   * not pass (a webhook, say) are refused by its adapter.
   */
  readonly mediaFields?: Partial<Readonly<Record<MediaCapability, MediaFieldSupport>>>;
  /** `true`: files of a form become a part of the JSON that it is sent, and so are in memory as a whole. */
  readonly embedsFiles?: true;
  /**
   * The dearest service tier that the vendor may choose for a request of `service_tier: "auto"`, by a setting of the operator's
   * account there; left out: none but its standard one.
   */
  readonly autoTier?: string;
  /** For docs/vendors.md; the sandbox has none. */
  readonly documentation?: VendorDocumentation;
}
