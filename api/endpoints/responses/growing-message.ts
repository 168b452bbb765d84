import { ownItemId, type ResponseItem } from '../../../shared/capabilities/response.ts';
import { addAll } from '../../../shared/runtime/collections.ts';
import type { EmitEvent } from './response-event.ts';

type Fields = Record<string, unknown>;

/** The position of an item of a response over a chat. */
export interface ItemPosition {
  readonly jobId: string;
  readonly outputIndex: number;
  readonly emit: EmitEvent;
}

interface TextPart {
  readonly type: 'output_text';
  text: string;
  readonly annotations: Fields[];
  readonly logprobs: Fields[];
}

interface RefusalPart {
  readonly type: 'refusal';
  refusal: string;
}

/** A streamed message of a response. It emits the events of its start, its pieces and its end. */
export class GrowingMessage {
  readonly #position: ItemPosition;
  readonly #id: string;
  readonly #content: (TextPart | RefusalPart)[] = [];

  constructor(position: ItemPosition) {
    this.#position = position;
    this.#id = ownItemId(`msg_${position.outputIndex}`, position.jobId);
    position.emit({
      type: 'response.output_item.added',
      output_index: position.outputIndex,
      item: this.#item('in_progress'),
    });
  }

  addText(text: string, chatLogprobs: readonly Fields[]): void {
    const part = this.#textPart();
    if (text === '' && chatLogprobs.length === 0) return;
    const logprobs = chatLogprobs.map(withBytes);
    part.text += text;
    addAll(part.logprobs, logprobs);
    this.#emit('response.output_text.delta', { delta: text, logprobs });
  }

  addAnnotation(annotation: Fields): void {
    const part = this.#textPart();
    const flat = flatAnnotation(annotation);
    this.#emit('response.output_text.annotation.added', {
      annotation_index: part.annotations.length,
      annotation: flat,
    });
    part.annotations.push(flat);
  }

  addRefusal(text: string): void {
    let part = this.#content.at(-1);
    if (part?.type !== 'refusal') {
      part = { type: 'refusal', refusal: '' };
      this.#open(part);
    }
    part.refusal += text;
    this.#emit('response.refusal.delta', { delta: text });
  }

  end(status: 'completed' | 'incomplete'): ResponseItem {
    this.#endPart();
    const item = this.#item(status);
    this.#position.emit({ type: 'response.output_item.done', output_index: this.#position.outputIndex, item });
    return item;
  }

  #textPart(): TextPart {
    const last = this.#content.at(-1);
    if (last?.type === 'output_text') return last;
    const part: TextPart = { type: 'output_text', text: '', annotations: [], logprobs: [] };
    this.#open(part);
    return part;
  }

  #open(part: TextPart | RefusalPart): void {
    this.#endPart();
    this.#content.push(part);
    this.#emit('response.content_part.added', { part: structuredClone(part) });
  }

  #endPart(): void {
    const part = this.#content.at(-1);
    if (part === undefined) return;
    if (part.type === 'refusal') this.#emit('response.refusal.done', { refusal: part.refusal });
    else this.#emit('response.output_text.done', { text: part.text, logprobs: part.logprobs });
    this.#emit('response.content_part.done', { part });
  }

  /** Emits an event of the last part. */
  #emit(type: string, fields: Fields): void {
    this.#position.emit({
      type,
      item_id: this.#id,
      output_index: this.#position.outputIndex,
      content_index: this.#content.length - 1,
      ...fields,
    });
  }

  #item(status: string): ResponseItem {
    return { id: this.#id, type: 'message', status, role: 'assistant', content: [...this.#content] };
  }
}

/** Chats nest a citation under the name of its type. */
function flatAnnotation(annotation: Fields): Fields {
  if (typeof annotation.type !== 'string') return annotation;
  const { type, [annotation.type]: cited, ...rest } = annotation;
  return typeof cited === 'object' && cited !== null ? { type, ...rest, ...cited } : annotation;
}

/** Chats may omit the bytes of a token; a response has them. */
function withBytes(entry: Fields): Fields {
  const own = { ...entry, bytes: entry.bytes ?? [...Buffer.from(String(entry.token))] };
  const top = Array.isArray(entry.top_logprobs) ? (entry.top_logprobs as Fields[]) : [];
  return {
    ...own,
    top_logprobs: top.map((each) => ({ ...each, bytes: each.bytes ?? [...Buffer.from(String(each.token))] })),
  };
}
