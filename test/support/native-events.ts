// biome-ignore lint/suspicious/noExplicitAny: written as it goes over the wire
type Any = any;

/** An item of a vendor's own response, and the events of OpenAI's stream that tell it in these pieces. */
export function nativeEvents(kind: string, said: readonly string[], index: number): { item: Any; events: Any[] } {
  const whole = said.join('');
  const itemId = `vendor_${index}`;
  const about = { item_id: itemId, output_index: index };
  const deltas = (type: string, more: object): Any[] => said.map((delta) => ({ type, ...about, ...more, delta }));
  const wrap = (item: Any, start: Any, middle: Any[]): { item: Any; events: Any[] } => ({
    item,
    events: [
      { type: 'response.output_item.added', output_index: index, item: { ...item, status: 'in_progress', ...start } },
      ...middle,
      { type: 'response.output_item.done', output_index: index, item },
    ],
  });
  if (kind === 'message' || kind === 'refusal') {
    const isText = kind === 'message';
    const lists = { annotations: [], logprobs: [] };
    const part = isText ? { type: 'output_text', text: whole, ...lists } : { type: 'refusal', refusal: whole };
    const item = { id: itemId, type: 'message', status: 'completed', role: 'assistant', content: [part] };
    const at = { ...about, content_index: 0 };
    const name = isText ? 'response.output_text' : 'response.refusal';
    return wrap(item, { content: [] }, [
      { type: 'response.content_part.added', ...at, part: { ...part, [isText ? 'text' : 'refusal']: '' } },
      ...deltas(`${name}.delta`, { content_index: 0, ...(isText && { logprobs: [] }) }),
      { type: `${name}.done`, ...at, ...(isText ? { text: whole, logprobs: [] } : { refusal: whole }) },
      { type: 'response.content_part.done', ...at, part },
    ]);
  }
  if (kind === 'reasoning') {
    const part = { type: 'summary_text', text: whole };
    const item = { id: itemId, type: 'reasoning', status: 'completed', summary: [part], encrypted_content: 'secret' };
    const at = { ...about, summary_index: 0 };
    return wrap(item, { summary: [] }, [
      { type: 'response.reasoning_summary_part.added', ...at, part: { ...part, text: '' } },
      ...deltas('response.reasoning_summary_text.delta', { summary_index: 0 }),
      { type: 'response.reasoning_summary_text.done', ...at, text: whole },
      { type: 'response.reasoning_summary_part.done', ...at, part },
    ]);
  }
  const isFunction = kind === 'function_call';
  const field = isFunction ? 'arguments' : 'input';
  const name = isFunction ? 'weather' : 'shell';
  const event = isFunction ? 'response.function_call_arguments' : 'response.custom_tool_call_input';
  const item = { id: itemId, type: kind, status: 'completed', call_id: `call_${index}`, name, [field]: whole };
  return wrap(item, { [field]: '' }, [
    ...deltas(`${event}.delta`, {}),
    { type: `${event}.done`, ...about, ...(isFunction && { name }), [field]: whole },
  ]);
}
