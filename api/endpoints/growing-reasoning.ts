import { ownItemId, type ResponseItem } from '../../shared/capabilities/response.ts';
import type { ItemPlace } from './growing-message.ts';

/** How a response shows reasoning: the text itself, or, where the caller asked for one, as its summary. */
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

/** The reasoning of a response while a chat says it: one part of text. */
export class GrowingReasoning {
  readonly #place: ItemPlace;
  readonly #form: (typeof forms)[keyof typeof forms];
  readonly #id: string;
  #text = '';

  constructor(place: ItemPlace, isSummary: boolean) {
    this.#place = place;
    this.#form = isSummary ? forms.summary : forms.text;
    this.#id = ownItemId(`rs_${place.outputIndex}`, place.jobId);
    const { emit, outputIndex } = place;
    const item = { id: this.#id, type: 'reasoning', status: 'in_progress', summary: [] };
    emit({ type: 'response.output_item.added', output_index: outputIndex, item });
    this.#emit(this.#form.added, { part: this.#part() });
  }

  add(text: string): void {
    this.#text += text;
    this.#emit(`${this.#form.text}.delta`, { delta: text });
  }

  end(status: 'completed' | 'incomplete'): ResponseItem {
    const { emit, outputIndex } = this.#place;
    this.#emit(`${this.#form.text}.done`, { text: this.#text });
    this.#emit(this.#form.done, { part: this.#part() });
    const said = this.#form === forms.summary ? { summary: [this.#part()] } : { summary: [], content: [this.#part()] };
    const item: ResponseItem = { id: this.#id, type: 'reasoning', status, ...said };
    emit({ type: 'response.output_item.done', output_index: outputIndex, item });
    return item;
  }

  #part(): { readonly type: string; readonly text: string } {
    return { type: this.#form.part, text: this.#text };
  }

  #emit(type: string, fields: Readonly<Record<string, unknown>>): void {
    const { emit, outputIndex } = this.#place;
    emit({ type, item_id: this.#id, output_index: outputIndex, [this.#form.index]: 0, ...fields });
  }
}
