/** A function call requested by a model. */
export interface ToolCall {
  readonly id: string;
  readonly name: string;
  /** JSON, as the model wrote it. */
  readonly arguments: string;
}

/** A user's turn. */
interface UserTurn {
  readonly role: 'user';
  readonly text: string;
  /** Data URLs and links. */
  readonly images: readonly string[];
}

/** A model's answer so far. */
export interface AssistantTurn {
  readonly role: 'assistant';
  readonly text: string;
  readonly reasoning: string;
  readonly toolCalls: readonly ToolCall[];
  /** The requested model. */
  readonly model: string;
  /** `job_…`, once known. */
  readonly jobId: string | undefined;
  readonly state: 'running' | 'done' | 'stopped' | 'failed';
  readonly error: string | undefined;
  /** `stop`, `length`, … */
  readonly finishReason: string | undefined;
  readonly startedAt: number;
  readonly firstAt: number | undefined;
  readonly endedAt: number | undefined;
}

/** The result of a called function, as typed in. */
export interface ToolTurn {
  readonly role: 'tool';
  readonly callId: string;
  readonly name: string;
  readonly text: string;
}

export type ChatTurn = UserTurn | AssistantTurn | ToolTurn;

/** The form beside the chat. Numbers are text while typed; '' leaves the field out. */
export interface ChatSettings {
  readonly model: string;
  readonly system: string;
  readonly temperature: number | '';
  readonly topP: number | '';
  readonly maxTokens: number | '';
  readonly seed: number | '';
  /** Stop texts, one per line. */
  readonly stop: string;
  readonly reasoningEffort: string;
  readonly stream: boolean;
  readonly useTools: boolean;
  /** JSON: a list of tools. */
  readonly tools: string;
  readonly toolChoice: 'auto' | 'required' | 'none';
  readonly useSchema: boolean;
  /** JSON: a schema. */
  readonly schema: string;
}

const exampleTools = [
  {
    type: 'function',
    function: {
      name: 'get_weather',
      description: 'The weather in a city now',
      parameters: {
        type: 'object',
        properties: { city: { type: 'string' }, unit: { type: 'string', enum: ['celsius', 'fahrenheit'] } },
        required: ['city'],
        additionalProperties: false,
      },
    },
  },
];

const exampleSchema = {
  type: 'object',
  properties: { title: { type: 'string' }, tags: { type: 'array', items: { type: 'string' } } },
  required: ['title', 'tags'],
  additionalProperties: false,
};

/** The initial form. */
export const firstChatSettings: ChatSettings = {
  model: '',
  system: '',
  temperature: '',
  topP: '',
  maxTokens: '',
  seed: '',
  stop: '',
  reasoningEffort: '',
  stream: true,
  useTools: false,
  tools: JSON.stringify(exampleTools, null, 2),
  toolChoice: 'auto',
  useSchema: false,
  schema: JSON.stringify(exampleSchema, null, 2),
};

/** The mistake in the JSON of the tools, as a message; undefined: none. */
export function toolsMistake(text: string): string | undefined {
  const tools = parsed(text);
  if (tools instanceof Error) return `This is not JSON: ${tools.message}`;
  if (!Array.isArray(tools) || tools.length === 0) return 'Give a list of tools: [ { "type": "function", … } ].';
  const nameless = tools.findIndex((tool) => typeof tool?.function?.name !== 'string' || tool.function.name === '');
  return nameless < 0 ? undefined : `Tool ${nameless + 1} has no function.name.`;
}

/** The same for a JSON schema. */
export function schemaMistake(text: string): string | undefined {
  const schema = parsed(text);
  if (schema instanceof Error) return `This is not JSON: ${schema.message}`;
  const isObject = typeof schema === 'object' && schema !== null && !Array.isArray(schema);
  return isObject ? undefined : 'A JSON schema is an object: { "type": "object", … }.';
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    return error as Error;
  }
}

/** The body of `POST /v1/chat/completions`. Its tools and schema must be free of mistakes. */
export function chatRequest(settings: ChatSettings, turns: readonly ChatTurn[]): Record<string, unknown> {
  const { system, useTools, useSchema } = settings;
  const stop = settings.stop.split('\n').filter((line) => line !== '');
  const schema = { name: 'answer', strict: true, schema: useSchema ? parsed(settings.schema) : undefined };
  return {
    model: settings.model,
    messages: [
      ...(system.trim() === '' ? [] : [{ role: 'system', content: system }]),
      ...turns.filter(isSent).map(wireMessage),
    ],
    ...numbers({
      temperature: settings.temperature,
      top_p: settings.topP,
      max_tokens: settings.maxTokens,
      seed: settings.seed,
    }),
    ...(stop.length > 0 && { stop }),
    ...(settings.reasoningEffort !== '' && { reasoning_effort: settings.reasoningEffort }),
    ...(useTools && { tools: parsed(settings.tools), tool_choice: settings.toolChoice }),
    ...(useSchema && { response_format: { type: 'json_schema', json_schema: schema } }),
    ...(settings.stream && { stream: true, stream_options: { include_usage: true } }),
  };
}

/** The turns of the request that led to the last answer. A trailing assistant turn would be a prefill, which vendors reject or continue. */
export function askedTurns(turns: readonly ChatTurn[]): readonly ChatTurn[] {
  return turns.slice(0, turns.findLastIndex(({ role }) => role !== 'assistant') + 1);
}

/** An empty answer (a failed one, say) is not part of the continued conversation. */
function isSent(turn: ChatTurn): boolean {
  return turn.role !== 'assistant' || turn.text !== '' || turn.toolCalls.length > 0;
}

function numbers(fields: Readonly<Record<string, number | ''>>): Record<string, number> {
  return Object.fromEntries(Object.entries(fields).filter((field): field is [string, number] => field[1] !== ''));
}

function wireMessage(turn: ChatTurn): Record<string, unknown> {
  if (turn.role === 'tool') return { role: 'tool', tool_call_id: turn.callId, content: turn.text };
  if (turn.role === 'user') {
    if (turn.images.length === 0) return { role: 'user', content: turn.text };
    const images = turn.images.map((url) => ({ type: 'image_url', image_url: { url } }));
    return { role: 'user', content: [...(turn.text === '' ? [] : [{ type: 'text', text: turn.text }]), ...images] };
  }
  const calls = turn.toolCalls.map(({ id, name, arguments: args }) => ({
    id,
    type: 'function',
    function: { name, arguments: args },
  }));
  return {
    role: 'assistant',
    content: turn.text === '' ? null : turn.text,
    ...(calls.length > 0 && { tool_calls: calls }),
  };
}

/** The calls of the last answer that no tool turn has answered yet. */
export function openCalls(turns: readonly ChatTurn[]): readonly ToolCall[] {
  const last = turns.findLastIndex(({ role }) => role === 'assistant');
  const answer = turns[last];
  if (answer?.role !== 'assistant' || answer.state === 'running') return [];
  const answered = new Set(turns.slice(last + 1).map((turn) => (turn.role === 'tool' ? turn.callId : '')));
  return answer.toolCalls.filter(({ id }) => !answered.has(id));
}
