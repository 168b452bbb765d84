import type { ResponseItem } from '../../../shared/capabilities/response.ts';
import { objectsOf, textOf } from '../../../shared/capabilities/vendor-values.ts';
import type { ResponseEvent } from './response-event.ts';

type Fields = Readonly<Record<string, unknown>>;

/** The text fields of items that are streamed in pieces, and their events. */
const grown: Readonly<Record<string, { readonly field: string; readonly event: string }>> = {
  function_call: { field: 'arguments', event: 'response.function_call_arguments' },
  custom_tool_call: { field: 'input', event: 'response.custom_tool_call_input' },
};

/** The events of a complete item: a stream with each text in one piece. */
export function wholeItemEvents(item: ResponseItem, outputIndex: number): ResponseEvent[] {
  const position = { item_id: item.id, output_index: outputIndex };
  return [
    { type: 'response.output_item.added', output_index: outputIndex, item: beginning(item) },
    ...grownFieldEvents(item, position),
    ...objectsOf(item.summary).flatMap((part, index) => summaryEvents(part, { ...position, summary_index: index })),
    ...objectsOf(item.content).flatMap((part, index) => partEvents(part, { ...position, content_index: index })),
    { type: 'response.output_item.done', output_index: outputIndex, item },
  ];
}

/** An item before its first text. */
function beginning(item: ResponseItem): ResponseItem {
  const field = grown[textOf(item.type)]?.field;
  return {
    ...item,
    ...('status' in item && { status: 'in_progress' }),
    ...(Array.isArray(item.content) && { content: [] }),
    ...(Array.isArray(item.summary) && { summary: [] }),
    ...(field !== undefined && { [field]: '' }),
  };
}

function grownFieldEvents(item: ResponseItem, position: Fields): ResponseEvent[] {
  const { field, event } = grown[textOf(item.type)] ?? {};
  if (field === undefined) return [];
  const name = item.type === 'function_call' ? { name: item.name } : {};
  return [
    ...pieces(`${event}.delta`, item[field], position),
    { type: `${event}.done`, ...position, ...name, [field]: item[field] },
  ];
}

function summaryEvents(part: Fields, position: Fields): ResponseEvent[] {
  return [
    { type: 'response.reasoning_summary_part.added', ...position, part: { ...part, text: '' } },
    ...pieces('response.reasoning_summary_text.delta', part.text, position),
    { type: 'response.reasoning_summary_text.done', ...position, text: part.text },
    { type: 'response.reasoning_summary_part.done', ...position, part },
  ];
}

function partEvents(part: Fields, position: Fields): ResponseEvent[] {
  const said = saidEvents(part, position);
  const field = part.type === 'refusal' ? 'refusal' : 'text';
  const lists = part.type === 'output_text' ? { annotations: [], logprobs: [] } : {};
  return [
    { type: 'response.content_part.added', ...position, part: { ...part, [field]: '', ...lists } },
    ...said,
    { type: 'response.content_part.done', ...position, part },
  ];
}

function saidEvents(part: Fields, position: Fields): ResponseEvent[] {
  switch (part.type) {
    case 'refusal':
      return [
        ...pieces('response.refusal.delta', part.refusal, position),
        { type: 'response.refusal.done', ...position, refusal: part.refusal },
      ];
    case 'reasoning_text':
      return [
        ...pieces('response.reasoning_text.delta', part.text, position),
        { type: 'response.reasoning_text.done', ...position, text: part.text },
      ];
    case 'output_text': {
      const logprobs = objectsOf(part.logprobs);
      return [
        ...pieces('response.output_text.delta', part.text, { ...position, logprobs }),
        ...objectsOf(part.annotations).map((annotation, index) => ({
          ...{ type: 'response.output_text.annotation.added', ...position },
          ...{ annotation_index: index, annotation },
        })),
        { type: 'response.output_text.done', ...position, text: part.text, logprobs },
      ];
    }
    default:
      return [];
  }
}

/** The delta of a whole text; none if it is empty. */
function pieces(type: string, text: unknown, position: Fields): ResponseEvent[] {
  return text === '' ? [] : [{ type, ...position, delta: text }];
}
