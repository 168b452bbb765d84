/**
 * Answers in OpenAI's wire format, written after its API reference (https://platform.openai.com/docs/api-reference/responses
 * and …/responses-streaming, in the state that the types of openai-node 6.49.0 describe, November 2026).
 */
type Fields = Record<string, unknown>;

const suffix = '67c9fdcf37fc8190ba82116e33fb28c507b8b0ad4e5eb654';

/** What the request said, as OpenAI says it again. */
const echo = {
  background: false,
  billing: { payer: 'developer' },
  instructions: 'You are a helpful assistant.',
  max_output_tokens: null,
  max_tool_calls: null,
  parallel_tool_calls: true,
  previous_response_id: null,
  prompt_cache_key: null,
  prompt_cache_retention: null,
  reasoning: { effort: null, summary: null },
  safety_identifier: null,
  store: false,
  temperature: 1,
  text: { format: { type: 'text' }, verbosity: 'medium' },
  tool_choice: 'auto',
  tools: [],
  top_logprobs: 0,
  top_p: 1,
  truncation: 'disabled',
  user: null,
  metadata: {},
};

export const usage = {
  input_tokens: 37,
  input_tokens_details: { cached_tokens: 12, cache_write_tokens: 0 },
  output_tokens: 11,
  output_tokens_details: { reasoning_tokens: 4 },
  total_tokens: 48,
};

/** OpenAI's `Response`. */
export function responseObject(status: string, more: Fields = {}): Fields {
  return {
    id: 'resp_67c9fdcecf488190bdd9a0409de3a1ec07b8b0ad4e5eb654',
    object: 'response',
    created_at: 1741290958,
    status,
    completed_at: status === 'completed' ? 1741290960 : null,
    error: null,
    incomplete_details: null,
    model: 'gpt-5.4',
    output: [],
    ...echo,
    service_tier: status === 'in_progress' ? 'auto' : 'default',
    usage: null,
    ...more,
  };
}

/** The items of an answer and the events between those of the whole response. */
export interface RecordedResponse {
  readonly output: readonly Fields[];
  readonly events: readonly Fields[];
  readonly status: 'completed' | 'incomplete';
  readonly incompleteDetails?: { readonly reason: string };
}

/** All events as they are sent, numbered. */
export function wireEvents({ output, events, status, incompleteDetails = undefined }: RecordedResponse): Fields[] {
  const begun = responseObject('in_progress');
  const ended = responseObject(status, { output, usage, incomplete_details: incompleteDetails ?? null });
  const all = [
    { type: 'response.created', response: begun },
    { type: 'response.in_progress', response: begun },
    ...events,
    { type: `response.${status}`, response: ended },
  ];
  return all.map(({ type, ...fields }, at) => ({ type, sequence_number: at, ...fields }));
}

/** Events as OpenAI writes them. */
export function written(events: readonly Fields[]): string {
  return events.map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`).join('');
}

const messageId = `msg_${suffix}`;

function message(text: string, status = 'completed'): Fields {
  const content = [{ type: 'output_text', annotations: [], logprobs: [], text }];
  return { id: messageId, type: 'message', status, content, role: 'assistant' };
}

/** The events of a message that comes in the given pieces. */
function messageEvents(pieces: readonly string[], at = 0, status = 'completed'): Fields[] {
  const place = { item_id: messageId, output_index: at, content_index: 0 };
  const text = pieces.join('');
  const part = (said: string) => ({ type: 'output_text', annotations: [], logprobs: [], text: said });
  return [
    {
      type: 'response.output_item.added',
      output_index: at,
      item: { id: messageId, type: 'message', status: 'in_progress', content: [], role: 'assistant' },
    },
    { type: 'response.content_part.added', ...place, part: part('') },
    ...pieces.map((delta, index) => ({
      type: 'response.output_text.delta',
      ...place,
      delta,
      logprobs: [],
      obfuscation: 'x'.repeat(index),
    })),
    { type: 'response.output_text.done', ...place, text, logprobs: [] },
    { type: 'response.content_part.done', ...place, part: part(text) },
    { type: 'response.output_item.done', output_index: at, item: message(text, status) },
  ];
}

const call = (given: string, status = 'completed') => ({
  id: `fc_${suffix}`,
  type: 'function_call',
  status,
  arguments: given,
  call_id: 'call_unLAR8MvFNptuiZK6K6HCy5k',
  name: 'get_current_weather',
});
const callPlace = { item_id: `fc_${suffix}`, output_index: 1 };

const reasoning = (summary: readonly Fields[], encrypted: string) => ({
  id: `rs_${suffix}`,
  type: 'reasoning',
  encrypted_content: encrypted,
  summary,
});
const summaryPart = { type: 'summary_text', text: '**Looking for** Łódź' };
const summaryPlace = { item_id: `rs_${suffix}`, output_index: 0, summary_index: 0 };
const thought = reasoning([summaryPart], 'gAAAAABn');

const customCall = (input: string, status = 'completed') => ({
  id: `ctc_${suffix}`,
  type: 'custom_tool_call',
  status,
  call_id: 'call_aGiFQkRWSWAIsMQ19fKqxUgb',
  input,
  name: 'code_exec',
});
const customPlace = { item_id: `ctc_${suffix}`, output_index: 0 };

const search = (status: string) => ({ id: `ws_${suffix}`, type: 'web_search_call', status });

/** Answers by what is special about them. */
export const responses: Record<string, RecordedResponse> = {
  'plain text': {
    status: 'completed',
    output: [message('Hi there! How can I assist you today?')],
    events: messageEvents(['Hi', ' there!', ' How can I', ' assist you today?']),
  },
  'multi-byte text with quotes and line breaks': {
    status: 'completed',
    output: [message('Zażółć "gęślą"\n🦥\u2028')],
    events: messageEvents(['Zażółć ', '"gęślą"\n', '🦥\u2028']),
  },
  'reasoning and a function call': {
    status: 'completed',
    output: [thought, call('{"location":"Łódź"}')],
    events: [
      { type: 'response.output_item.added', output_index: 0, item: reasoning([], 'gAAA') },
      {
        type: 'response.reasoning_summary_part.added',
        ...summaryPlace,
        part: { type: 'summary_text', text: '' },
      },
      { type: 'response.reasoning_summary_text.delta', ...summaryPlace, delta: '**Looking for**', obfuscation: 'a' },
      { type: 'response.reasoning_summary_text.delta', ...summaryPlace, delta: ' Łódź', obfuscation: '' },
      { type: 'response.reasoning_summary_text.done', ...summaryPlace, text: summaryPart.text },
      { type: 'response.reasoning_summary_part.done', ...summaryPlace, part: summaryPart },
      { type: 'response.output_item.done', output_index: 0, item: thought },
      { type: 'response.output_item.added', output_index: 1, item: call('', 'in_progress') },
      { type: 'response.function_call_arguments.delta', ...callPlace, delta: '{"location":', obfuscation: 'Zx1' },
      { type: 'response.function_call_arguments.delta', ...callPlace, delta: '"Łódź"}', obfuscation: 'Q' },
      {
        type: 'response.function_call_arguments.done',
        ...callPlace,
        name: 'get_current_weather',
        arguments: '{"location":"Łódź"}',
      },
      { type: 'response.output_item.done', output_index: 1, item: call('{"location":"Łódź"}') },
    ],
  },
  'a custom tool call': {
    status: 'completed',
    output: [customCall('print("hi")')],
    events: [
      { type: 'response.output_item.added', output_index: 0, item: customCall('', 'in_progress') },
      { type: 'response.custom_tool_call_input.delta', ...customPlace, delta: 'print(', obfuscation: 'k' },
      { type: 'response.custom_tool_call_input.delta', ...customPlace, delta: '"hi")', obfuscation: 'kk' },
      { type: 'response.custom_tool_call_input.done', ...customPlace, input: 'print("hi")' },
      { type: 'response.output_item.done', output_index: 0, item: customCall('print("hi")') },
    ],
  },
  'a hosted search and its answer': {
    status: 'completed',
    output: [search('completed'), message('As of today …')],
    events: [
      { type: 'response.output_item.added', output_index: 0, item: search('in_progress') },
      { type: 'response.web_search_call.in_progress', output_index: 0, item_id: `ws_${suffix}` },
      { type: 'response.web_search_call.searching', output_index: 0, item_id: `ws_${suffix}` },
      { type: 'response.web_search_call.completed', output_index: 0, item_id: `ws_${suffix}` },
      { type: 'response.output_item.done', output_index: 0, item: search('completed') },
      ...messageEvents(['As of', ' today …'], 1),
    ],
  },
  'an end by the limit of tokens': {
    status: 'incomplete',
    incompleteDetails: { reason: 'max_output_tokens' },
    output: [message('Once upon', 'incomplete')],
    events: messageEvents(['Once', ' upon'], 0, 'incomplete'),
  },
};

/** The recorded answer of that name. */
export function recorded(name: string): RecordedResponse {
  const response = responses[name];
  if (response === undefined) throw new Error(`no answer is recorded as "${name}"`);
  return response;
}
