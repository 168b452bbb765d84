import assert from 'node:assert/strict';

// biome-ignore lint/suspicious/noExplicitAny: what came over the wire
type Any = any;

/** The events in the text of a stream of responses, `[DONE]` as the string that it is. */
export function parseResponseEvents(texts: readonly string[]): Any[] {
  return texts.map((text) => {
    if (text === 'data: [DONE]') return '[DONE]';
    const [, name, data] = /^event: (\S+)\ndata: ([^\n]*)$/.exec(text) ?? assert.fail(`no event: ${text}`);
    const event = JSON.parse(data as string);
    assert.equal(event.type, name);
    return event;
  });
}

/**
 * What the events of a response's stream add up to, by a fold of its own: every item grown from its deltas alone. Checks
 * that they are numbered without a gap, begin and end as they should, and that each `done` says what its deltas said.
 */
export function saidInResponse(events: readonly Any[]): { items: Any[]; response: Any } {
  assert.deepEqual(
    events.map((event) => event.sequence_number),
    events.map((_, index) => index),
  );
  const items: Any[] = [];
  const ended = new Set<number>();
  for (const event of events.slice(0, -1)) grow(items, ended, event);
  const { response } = events.at(-1);
  assert.equal(events[0].type, 'response.created');
  assert.equal(events.at(-1).type, `response.${response.status}`);
  assert.equal(ended.size, items.length, 'every item has ended');
  assert.deepEqual(response.output, items);
  return { items, response };
}

function grow(items: Any[], ended: Set<number>, event: Any): void {
  const item = items[event.output_index];
  const part = item?.content?.[event.content_index] ?? item?.summary?.[event.summary_index];
  if (item !== undefined) {
    assert.equal(ended.has(event.output_index), false, `${event.type} comes after the item's end`);
    if (event.item_id !== undefined) assert.equal(event.item_id, item.id);
  }
  switch (event.type) {
    case 'response.created':
    case 'response.queued':
    case 'response.in_progress':
      assert.equal(event.response.usage, null);
      assert.deepEqual(event.response.output, []);
      assert.equal(items.length, 0);
      break;
    case 'response.output_item.added':
      assert.equal(event.output_index, items.length);
      assert.equal(event.item.status, 'in_progress');
      items.push(structuredClone(event.item));
      break;
    case 'response.content_part.added':
      item.content ??= [];
      assert.equal(event.content_index, item.content.length);
      item.content.push(structuredClone(event.part));
      break;
    case 'response.reasoning_summary_part.added':
      item.summary.push(structuredClone(event.part));
      break;
    case 'response.output_text.delta':
      part.text += event.delta;
      part.logprobs.push(...event.logprobs);
      break;
    case 'response.output_text.annotation.added':
      assert.equal(event.annotation_index, part.annotations.length);
      part.annotations.push(event.annotation);
      break;
    case 'response.reasoning_text.delta':
    case 'response.reasoning_summary_text.delta':
      part.text += event.delta;
      break;
    case 'response.refusal.delta':
      part.refusal += event.delta;
      break;
    case 'response.function_call_arguments.delta':
      item.arguments += event.delta;
      break;
    case 'response.custom_tool_call_input.delta':
      item.input += event.delta;
      break;
    case 'response.output_text.done':
      assert.deepEqual([event.text, event.logprobs], [part.text, part.logprobs]);
      break;
    case 'response.reasoning_text.done':
    case 'response.reasoning_summary_text.done':
      assert.equal(event.text, part.text);
      break;
    case 'response.refusal.done':
      assert.equal(event.refusal, part.refusal);
      break;
    case 'response.content_part.done':
    case 'response.reasoning_summary_part.done':
      assert.deepEqual(event.part, part);
      break;
    case 'response.function_call_arguments.done':
      assert.deepEqual([event.name, event.arguments], [item.name, item.arguments]);
      break;
    case 'response.custom_tool_call_input.done':
      assert.equal(event.input, item.input);
      break;
    case 'response.output_item.done':
      items[event.output_index] = { ...item, status: event.item.status };
      // Of a reasoning item's end only: no delta tells it.
      if (event.item.encrypted_content) items[event.output_index].encrypted_content = event.item.encrypted_content;
      assert.deepEqual(event.item, items[event.output_index]);
      ended.add(event.output_index);
      break;
    default:
      assert.fail(`unknown event ${event.type}`);
  }
}
