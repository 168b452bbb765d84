import { ownItemId, type ResponseItem } from '../../../shared/capabilities/response.ts';
import type { CallableTool } from '../../../shared/capabilities/response-tools.ts';
import { CustomToolInput } from './custom-tool-input.ts';
import type { ItemPosition } from './growing-message.ts';
import { ObjectPieces } from './object-pieces.ts';

/** A streamed call of one of the caller's tools: a function, or a custom tool with a stand-in function. */
export class GrowingCall {
  readonly #position: ItemPosition;
  readonly #tool: CallableTool;
  readonly #id: string;
  readonly #callId: string;
  readonly #input: CustomToolInput | undefined;
  #arguments = '';
  readonly #object = new ObjectPieces();
  /** Whether the whole object is JSON, once that is known. */
  #isJson: boolean | undefined;

  /** @param callId the chat's id of the call; defaults to the item's own */
  constructor(position: ItemPosition, tool: CallableTool, callId: string | undefined) {
    this.#position = position;
    this.#tool = tool;
    this.#input = tool.type === 'custom' ? new CustomToolInput() : undefined;
    this.#id = ownItemId(`${this.#input ? 'ctc' : 'fc'}_${position.outputIndex}`, position.jobId);
    this.#callId = callId ?? this.#id;
    const { emit, outputIndex } = position;
    emit({ type: 'response.output_item.added', output_index: outputIndex, item: this.#item('in_progress') });
  }

  /** Whether the arguments are a complete object, which nothing can follow. */
  get isComplete(): boolean {
    if (!this.#object.isWhole) return false;
    this.#isJson ??= isJson(this.#arguments);
    return this.#isJson;
  }

  add(piece: string): void {
    this.#arguments += piece;
    this.#object.add(piece);
    this.#tell(this.#input === undefined ? piece : this.#input.push(piece));
  }

  end(status: 'completed' | 'incomplete'): ResponseItem {
    if (this.#input !== undefined) this.#tell(this.#input.end());
    const { emit, outputIndex } = this.#position;
    const item = this.#item(status);
    emit({
      ...this.#about(this.#input ? 'response.custom_tool_call_input.done' : 'response.function_call_arguments.done'),
      ...(this.#input ? { input: this.#input.text } : { name: this.#tool.name, arguments: this.#arguments }),
    });
    emit({ type: 'response.output_item.done', output_index: outputIndex, item });
    return item;
  }

  #tell(delta: string): void {
    if (delta === '') return;
    const type = this.#input ? 'response.custom_tool_call_input.delta' : 'response.function_call_arguments.delta';
    this.#position.emit({ ...this.#about(type), delta });
  }

  #about(type: string): { type: string; item_id: string; output_index: number } {
    return { type, item_id: this.#id, output_index: this.#position.outputIndex };
  }

  #item(status: string): ResponseItem {
    const { name, namespace } = this.#tool;
    return {
      id: this.#id,
      type: this.#input ? 'custom_tool_call' : 'function_call',
      status,
      call_id: this.#callId,
      ...(namespace !== undefined && { namespace }),
      name,
      ...(this.#input ? { input: this.#input.text } : { arguments: this.#arguments }),
    };
  }
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}
