import { ownItemId, type ResponseItem } from '../../../shared/capabilities/response.ts';
import { writeUnsignedThought } from '../../../shared/capabilities/signed-thought.ts';
import type { ItemPosition } from './growing-message.ts';

/** Forms of reasoning in a response: the text itself, or its summary if the caller requested one. */
const forms = {
  text: {
    index: 'content_index',
    part: 'reasoning_text',
    added: 'response.content_part.added',
    done: 'response.content_part.done',
    text: 'response.reasoning_text',
  },
  summary: {
    index: 'summary_index',
    part: 'summary_text',
    added: 'response.reasoning_summary_part.added',
    done: 'response.reasoning_summary_part.done',
    text: 'response.reasoning_summary_text',
  },
} as const;

/** How the reasoning of a response is shown. */
export interface ReasoningForm {
  /** As its summary. */
  readonly isSummarized: boolean;
  /** Also in its `encrypted_content`, if it has no signature there. */
  readonly isCarried: boolean;
}

/** The streamed reasoning of a response: at most one part of text, and its signature. */
export class GrowingReasoning {
  readonly #position: ItemPosition;
  readonly #form: (typeof forms)[keyof typeof forms];
  readonly #isCarried: boolean;
  readonly #id: string;
  #text = '';
  #encrypted: string | undefined;

  constructor(position: ItemPosition, { isSummarized, isCarried }: ReasoningForm) {
    this.#position = position;
    this.#form = isSummarized ? forms.summary : forms.text;
    this.#isCarried = isCarried;
    this.#id = ownItemId(`rs_${position.outputIndex}`, position.jobId);
    const { emit, outputIndex } = position;
    const item = { id: this.#id, type: 'reasoning', status: 'in_progress', summary: [] };
    emit({ type: 'response.output_item.added', output_index: outputIndex, item });
  }

  /** Whether it has its signature: further thoughts are separate items. */
  get isSigned(): boolean {
    return this.#encrypted !== undefined;
  }

  get text(): string {
    return this.#text;
  }

  /** @param encrypted its `encrypted_content`, which callers return unchanged */
  sign(encrypted: string): void {
    this.#encrypted = encrypted;
  }

  add(text: string): void {
    if (this.#text === '') this.#emit(this.#form.added, { part: this.#part() });
    this.#text += text;
    this.#emit(`${this.#form.text}.delta`, { delta: text });
  }

  end(status: 'completed' | 'incomplete'): ResponseItem {
    const { emit, outputIndex } = this.#position;
    const parts = this.#text === '' ? [] : [this.#part()];
    if (parts.length > 0) {
      this.#emit(`${this.#form.text}.done`, { text: this.#text });
      this.#emit(this.#form.done, { part: this.#part() });
    }
    if (this.#isCarried && this.#text !== '') this.#encrypted ??= writeUnsignedThought(this.#text);
    const item: ResponseItem = {
      ...{ id: this.#id, type: 'reasoning', status },
      summary: this.#form === forms.summary ? parts : [],
      ...(this.#form === forms.text && parts.length > 0 && { content: parts }),
      ...(this.#encrypted !== undefined && { encrypted_content: this.#encrypted }),
    };
    emit({ type: 'response.output_item.done', output_index: outputIndex, item });
    return item;
  }

  #part(): { readonly type: string; readonly text: string } {
    return { type: this.#form.part, text: this.#text };
  }

  #emit(type: string, fields: Readonly<Record<string, unknown>>): void {
    const { emit, outputIndex } = this.#position;
    emit({ type, item_id: this.#id, output_index: outputIndex, [this.#form.index]: 0, ...fields });
  }
}
