/** Whose credentials a request carries. */
export type Credential = 'key' | 'operator_key' | 'session' | 'none';

/** A valid request of one endpoint, in as many of its forms as there are ways through the code. */
export interface Sample {
  /** As the router has it: `POST /v1/chat/completions`. */
  readonly route: string;
  readonly credential: Credential;
  readonly json?: unknown;
  /** Fields and files of a form. */
  readonly form?: readonly FormPart[];
  readonly query?: string;
}

export interface FormPart {
  readonly name: string;
  readonly value: string;
  /** Absent: a field. */
  readonly file?: { readonly name: string; readonly type: string };
}

const pixel = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';
const link = `data:image/png;base64,${pixel}`;
const schema = { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] };
const weather = { name: 'weather', description: 'Tells it.', parameters: schema };
const chatTool = { type: 'function', function: weather };
const toolTalk = [
  {
    role: 'assistant',
    content: null,
    tool_calls: [{ id: 'call_1', type: 'function', function: { name: 'weather', arguments: '{}' } }],
  },
  { role: 'tool', tool_call_id: 'call_1', content: [{ type: 'text', text: 'Rain.' }] },
];
const parts = [
  { type: 'text', text: 'What is this?' },
  { type: 'image_url', image_url: { url: link, detail: 'low' } },
  { type: 'input_audio', input_audio: { data: 'UklGRg==', format: 'wav' } },
  { type: 'file', file: { filename: 'a.pdf', file_data: 'data:application/pdf;base64,JVBERi0=' } },
];
const chat = { model: 'sandbox-chat', max_tokens: 8, messages: [{ role: 'user', content: 'Hi' }] };

const chats: readonly object[] = [
  { ...chat, stream: true, stream_options: { include_usage: true } },
  {
    ...chat,
    messages: [
      { role: 'system', content: 'Be short.', name: 'boss' },
      { role: 'developer', content: [{ type: 'text', text: 'Be kind.' }] },
      { role: 'user', content: parts },
      ...toolTalk,
    ],
    tools: [
      chatTool,
      {
        type: 'custom',
        custom: { name: 'grep', format: { type: 'grammar', grammar: { definition: 'a', syntax: 'lark' } } },
      },
    ],
    tool_choice: { type: 'function', function: { name: 'weather' } },
    parallel_tool_calls: true,
    response_format: { type: 'json_schema', json_schema: { name: 'place', schema, strict: true } },
  },
  {
    ...chat,
    ...{
      temperature: 1,
      top_p: 0.5,
      n: 2,
      stop: ['x'],
      presence_penalty: 0,
      frequency_penalty: 0,
      seed: 1,
      user: 'me',
    },
    ...{
      logit_bias: { 1: 2 },
      logprobs: true,
      top_logprobs: 2,
      metadata: { a: 'b' },
      store: false,
      max_completion_tokens: 8,
    },
    ...{
      reasoning_effort: 'low',
      modalities: ['text'],
      prediction: { type: 'content', content: 'Hi' },
      service_tier: 'auto',
    },
    ...{
      sandbox: { first_token_ms: 0 },
      web_search_options: {},
      verbosity: 'low',
      prompt_cache_key: 'k',
      max_tokens: undefined,
    },
  },
  {
    ...chat,
    functions: [weather],
    function_call: { name: 'weather' },
    messages: [
      { role: 'user', content: 'Hi' },
      { role: 'assistant', content: null, function_call: { name: 'weather', arguments: '{}' } },
      { role: 'function', name: 'weather', content: 'Rain.' },
    ],
  },
];

const responseItems = [
  {
    type: 'message',
    role: 'user',
    content: [
      { type: 'input_text', text: 'Hi' },
      { type: 'input_image', image_url: link, detail: 'low' },
    ],
  },
  {
    role: 'user',
    content: [{ type: 'input_file', filename: 'a.pdf', file_data: 'data:application/pdf;base64,JVBERi0=' }],
  },
  { role: 'user', content: [{ type: 'input_audio', input_audio: { data: 'UklGRg==', format: 'wav' } }] },
  {
    role: 'assistant',
    content: [
      { type: 'output_text', text: 'Ho' },
      { type: 'refusal', refusal: 'No.' },
    ],
  },
  {
    type: 'reasoning',
    id: 'rs_1',
    summary: [{ type: 'summary_text', text: 'Hm.' }],
    content: [],
    encrypted_content: 'e30=',
  },
  { type: 'function_call', call_id: 'call_1', name: 'weather', arguments: '{}' },
  { type: 'function_call_output', call_id: 'call_1', output: [{ type: 'input_text', text: 'Rain.' }] },
  { type: 'custom_tool_call', call_id: 'call_2', name: 'grep', input: 'a' },
  { type: 'custom_tool_call_output', call_id: 'call_2', output: 'b' },
];
const hostedItems = [
  {
    type: 'web_search_call',
    id: 'ws_1',
    status: 'completed',
    action: { type: 'search', query: 'q' },
    content: [{ type: 'x' }],
  },
  { type: 'item_reference', id: 'msg_1' },
  { type: 'computer_call_output', call_id: 'c', output: { type: 'computer_screenshot', image_url: link } },
  {
    type: 'shell_call',
    id: 's',
    action: { commands: ['ls'] },
    content: [{ file_id: 'file_1' }],
    output: [{ text: 'a' }],
  },
];
export const responseRequests: readonly object[] = [
  { model: 'sandbox-chat', input: 'Hi', max_output_tokens: 16 },
  { model: 'sandbox-chat', input: responseItems, stream: true, max_output_tokens: 16, instructions: 'Be short.' },
  { model: 'sandbox-responses', input: [...responseItems, ...hostedItems], max_output_tokens: 16 },
  { model: 'sandbox-chat', input: [responseItems[0], ...hostedItems], max_output_tokens: 16 },
  {
    ...{ model: 'sandbox-responses', input: 'Hi', max_output_tokens: 16, stream: true, store: true, background: false },
    ...{
      temperature: 1,
      top_p: 1,
      top_logprobs: 1,
      truncation: 'auto',
      user: 'me',
      metadata: { a: 'b' },
      service_tier: 'auto',
    },
    tools: [
      { type: 'function', ...weather, strict: false },
      { type: 'custom', name: 'grep', format: { type: 'text' } },
      { type: 'web_search', filters: { allowed_domains: ['example.com'] } },
      { type: 'namespace', name: 'n', description: 'd', tools: [{ type: 'function', name: 'f', parameters: schema }] },
    ],
    ...{ tool_choice: { type: 'allowed_tools', mode: 'auto', tools: [{ type: 'function', name: 'weather' }] } },
    ...{
      reasoning: { effort: 'low', summary: 'auto' },
      include: ['reasoning.encrypted_content'],
      parallel_tool_calls: true,
    },
    text: { format: { type: 'json_schema', name: 'place', schema, strict: true }, verbosity: 'low' },
  },
  {
    model: 'sandbox-chat',
    input: 'Hi',
    background: true,
    max_output_tokens: 16,
    stream_options: { include_obfuscation: true },
  },
  {
    model: 'sandbox-chat',
    input: 'Hi',
    previous_response_id: '$response',
    max_output_tokens: 16,
    conversation: null,
    prompt: null,
  },
];

const blocks = [
  { type: 'text', text: 'Hi', cache_control: { type: 'ephemeral' } },
  { type: 'image', source: { type: 'base64', media_type: 'image/png', data: pixel } },
  {
    type: 'document',
    source: { type: 'text', media_type: 'text/plain', data: 'text' },
    title: 't',
    citations: { enabled: true },
  },
  { type: 'document', source: { type: 'content', content: [{ type: 'text', text: 'x' }] } },
  { type: 'search_result', source: 's', title: 't', content: [{ type: 'text', text: 'x' }] },
];
const messageRequest = {
  model: 'sandbox-chat',
  max_tokens: 8,
  system: [{ type: 'text', text: 'Be short.' }],
  messages: [
    { role: 'user', content: blocks },
    {
      role: 'assistant',
      content: [
        { type: 'thinking', thinking: 'hm', signature: 's' },
        { type: 'redacted_thinking', data: 'd' },
        { type: 'tool_use', id: 'toolu_1', name: 'weather', input: { city: 'Ulm' } },
      ],
    },
    {
      role: 'user',
      content: [
        { type: 'tool_result', tool_use_id: 'toolu_1', is_error: false, content: [{ type: 'text', text: 'Rain.' }] },
      ],
    },
  ],
  tools: [
    { name: 'weather', description: 'Tells it.', input_schema: schema },
    { type: 'web_search_20250305', name: 'web_search' },
  ],
  tool_choice: { type: 'auto', disable_parallel_tool_use: true },
  ...{ temperature: 1, top_p: 1, top_k: 4, stop_sequences: ['x'], metadata: { user_id: 'me' }, stream: true },
  ...{ thinking: { type: 'disabled' }, output_config: { effort: 'low' } },
};

const file = (name: string, fileName = 'file.png', type = 'image/png'): FormPart => ({
  ...{ name, file: { name: fileName, type } },
  value: Buffer.from(pixel, 'base64').toString('latin1'),
});
const field = (name: string, value: string): FormPart => ({ name, value });
const audio = file('file', 'a.wav', 'audio/wav');

function makers(prefix: string, credential: Credential): Sample[] {
  const make = (path: string, ...requests: readonly object[]): Sample[] =>
    requests.map((json) => ({ route: `POST ${prefix}/${path}`, credential, json }));
  const form = (path: string, ...form: FormPart[]): Sample => ({ route: `POST ${prefix}/${path}`, credential, form });
  const image = { model: 'sandbox-image', prompt: 'Hi', size: '256x256' };
  return [
    ...make('chat/completions', ...chats),
    ...make(
      'completions',
      {
        model: 'sandbox-instruct',
        prompt: 'Hi',
        max_tokens: 8,
        suffix: 'x',
        echo: true,
        logprobs: 2,
        best_of: 2,
        n: 1,
      },
      { model: 'sandbox-chat', prompt: ['Hi', 'Ho'], max_tokens: 8, stream: true, stop: 'x', logit_bias: { 1: 1 } },
      { model: 'sandbox-instruct', prompt: [[1, 2], [3]], max_tokens: 8 },
    ),
    ...make('embeddings', {
      model: 'sandbox-embedding',
      input: ['Hi', 'Ho'],
      dimensions: 8,
      encoding_format: 'base64',
      user: 'me',
    }),
    ...make('embeddings', { model: 'sandbox-embedding', input: [[1, 2, 3], [4]] }),
    ...make('images/generations', { ...image, n: 1, response_format: 'b64_json', quality: 'low', background: 'auto' }),
    ...make('images/generations', {
      ...image,
      stream: true,
      partial_images: 1,
      output_format: 'png',
      output_compression: 50,
    }),
    ...make('images/edits', {
      ...image,
      images: [{ image_url: link }],
      mask: { image_url: link },
      input_fidelity: 'low',
    }),
    form(
      'images/edits',
      field('model', 'sandbox-image'),
      field('prompt', 'Hi'),
      field('n', '1'),
      file('image[]'),
      file('mask'),
    ),
    form('images/variations', field('model', 'sandbox-image'), field('size', '256x256'), file('image')),
    form(
      'audio/transcriptions',
      field('model', 'sandbox-transcribe'),
      field('response_format', 'verbose_json'),
      field('timestamp_granularities[]', 'word'),
      audio,
    ),
    form(
      'audio/transcriptions',
      field('model', 'sandbox-transcribe'),
      field('stream', 'true'),
      field('language', 'en'),
      field('temperature', '0'),
      field('chunking_strategy', 'auto'),
      field('include[]', 'logprobs'),
      audio,
    ),
    form('audio/translations', field('model', 'sandbox-transcribe'), field('prompt', 'Hi'), audio),
    ...make('audio/speech', {
      model: 'sandbox-speech',
      input: 'Hi',
      voice: 'alloy',
      response_format: 'pcm',
      speed: 4,
      stream_format: 'sse',
    }),
    ...make('responses', ...responseRequests),
    ...make('messages', messageRequest, { ...messageRequest, stream: false, tools: undefined, tool_choice: undefined }),
    ...make('messages/count_tokens', {
      model: 'sandbox-chat',
      messages: messageRequest.messages,
      system: 'x',
      tools: messageRequest.tools,
    }),
    ...make('videos', {
      model: 'sandbox-video',
      prompt: 'Hi',
      seconds: '4',
      size: '1280x720',
      sandbox: { video: { duration_ms: 0 } },
    }),
    form(
      'videos',
      field('model', 'sandbox-video'),
      field('prompt', 'Hi'),
      field('seconds', '4'),
      file('input_reference'),
    ),
    {
      route: `POST ${prefix}/videos/:id/remix`,
      credential,
      json: { prompt: 'Hi', sandbox: { video: { duration_ms: 0 } } },
    },
  ];
}

function reads(credential: Credential, query: string, ...routes: string[]): Sample[] {
  return routes.map((route) => ({ route, credential, query }));
}

const keyFields = {
  ...{
    name: 'mine',
    concurrency: 5,
    on_disconnect: 'continue',
    unsupported_parameters: 'drop',
    cache_breakpoints: 'automatic',
    priority: 'low',
    max_priority: 'high',
    single_flight: true,
    cache_seconds: 60,
    expires_at: 4_000_000_000,
  },
  ...{ models: ['sandbox-chat'], capabilities: ['chat'], budget: { amount: 5, period: 'day' }, rpm: 9, tpm: 9 },
};
const jobQuery =
  'limit=5&after=$job&outcome=completed&model=sandbox-chat&from=1700000000000&to=1900000000000&tag=a:b&endpoint=chat.completions';
const usageQuery = 'from=1700000000000&to=1900000000000&group_by=model&interval=day&key=$key';

/** Valid requests for every route that there is, except the files of the console and the board of the queues. */
export const samples: readonly Sample[] = [
  ...reads(
    'none',
    '',
    'GET /',
    'GET /openapi.json',
    'GET /docs',
    'GET /favicon.ico',
    'GET /llms.txt',
    'GET /healthz',
    'GET /readyz',
    'GET /metrics',
  ),
  ...reads('none', '', 'GET /health', 'GET /health/liveliness', 'GET /health/liveness', 'GET /health/readiness'),
  ...reads('none', 'expires=1&signature=x', 'GET /results/:hour/:name'),
  ...makers('/v1', 'key'),
  ...makers('/console/api/v1', 'session'),
  ...reads(
    'key',
    'limit=5&after=$video&order=asc',
    'GET /v1/models',
    'GET /v1/models/*id',
    'GET /v1/videos',
    'GET /v1/videos/:id',
  ),
  ...reads('key', 'variant=video', 'GET /v1/videos/:id/content', 'DELETE /v1/videos/:id'),
  ...reads('key', 'include=a&starting_after=2&stream=true', 'GET /v1/responses/:id', 'DELETE /v1/responses/:id'),
  ...reads('key', 'limit=2&order=asc&after=x', 'POST /v1/responses/:id/cancel', 'GET /v1/responses/:id/input_items'),
  ...reads('key', '', 'GET /v1/key'),
  ...reads('key', 'start_time=1700000000&end_time=1700086400&bucket_width=1h', 'GET /v1/usage'),
  ...reads('key', 'limit=5&after=$job&order=asc&status=completed&model=sandbox-chat', 'GET /v1/jobs'),
  ...reads('key', 'starting_after=1.0', 'GET /v1/jobs/:id', 'GET /v1/jobs/:id/events', 'DELETE /v1/jobs/:id'),
  ...reads(
    'session',
    'limit=5',
    'GET /console/api/v1/models',
    'GET /console/api/v1/models/*id',
    'GET /console/api/v1/videos',
  ),
  ...reads(
    'session',
    '',
    'GET /console/api/v1/videos/:id',
    'GET /console/api/v1/videos/:id/content',
    'DELETE /console/api/v1/videos/:id',
  ),
  ...reads(
    'session',
    '',
    'GET /console/api/v1/jobs/:id',
    'GET /console/api/v1/jobs/:id/events',
    'DELETE /console/api/v1/jobs/:id',
  ),
  ...reads('session', '', 'GET /console/api/settings', 'GET /console/api/session', 'GET /console/api/keys'),
  ...reads('session', 'available=true', 'GET /console/api/models', 'GET /console/api/models/*id'),
  ...reads('session', usageQuery, 'GET /console/api/usage', 'GET /console/api/usage.csv'),
  ...reads('session', jobQuery, 'GET /console/api/jobs', 'GET /console/api/jobs.csv', 'GET /console/api/jobs/live'),
  ...reads(
    'session',
    '',
    'GET /console/api/jobs/:id',
    'DELETE /console/api/jobs/:id',
    'GET /console/api/jobs/:id/events',
    'GET /console/api/requests/:id',
  ),
  { route: 'POST /console/api/keys', credential: 'session', json: keyFields },
  { route: 'PATCH /console/api/keys/:id', credential: 'session', json: keyFields },
  { route: 'POST /console/api/keys/:id/rotate', credential: 'session', json: { overlap_seconds: 60 } },
  { route: 'DELETE /console/api/keys/:id', credential: 'session' },
  {
    route: 'ALL /console/api/auth/*path',
    credential: 'none',
    json: {
      email: 'a@example.com',
      password: 'a long password',
      name: 'A',
      callbackURL: '/x',
      token: 't',
      newPassword: 'another password',
    },
  },
  ...reads('operator_key', 'limit=5', 'GET /admin/v1/accounts', 'GET /admin/v1/accounts/:id'),
  ...reads('operator_key', 'limit=5&search=a&account=default', 'GET /admin/v1/users'),
  { route: 'POST /admin/v1/accounts', credential: 'operator_key', json: { name: 'new', is_unlimited: true } },
  {
    route: 'PATCH /admin/v1/accounts/:id',
    credential: 'operator_key',
    json: {
      name: 'new',
      suspended: false,
      is_unlimited: true,
      queue_weight: 2,
      queue_by_key: true,
      max_priority: 'high',
    },
  },
  ...reads(
    'operator_key',
    '',
    'GET /admin/v1/accounts/:id/credits',
    'GET /admin/v1/accounts/:id/keys',
    'GET /admin/v1/workers',
  ),
  { route: 'POST /admin/v1/accounts/:id/credits', credential: 'operator_key', json: { amount: 5, note: 'mine' } },
  { route: 'POST /admin/v1/accounts/:id/keys', credential: 'operator_key', json: { ...keyFields, kind: 'standard' } },
  { route: 'PATCH /admin/v1/keys/:id', credential: 'operator_key', json: keyFields },
  { route: 'DELETE /admin/v1/keys/:id', credential: 'operator_key' },
  { route: 'POST /admin/v1/keys/:id/rotate', credential: 'operator_key', json: { overlap_seconds: 0 } },
  {
    route: 'POST /admin/v1/users',
    credential: 'operator_key',
    json: { email: 'invited@example.com', name: 'Invited', role: 'user', account_id: 'default' },
  },
  {
    route: 'PATCH /admin/v1/users/:id',
    credential: 'operator_key',
    json: { role: 'user', account_id: 'default', disabled: true },
  },
  { route: 'DELETE /admin/v1/users/:id', credential: 'operator_key' },
  { route: 'POST /admin/v1/users/:id/password-reset', credential: 'operator_key', json: {} },
  ...reads('operator_key', usageQuery, 'GET /admin/v1/usage', 'GET /admin/v1/usage.csv'),
  ...reads('operator_key', jobQuery, 'GET /admin/v1/jobs', 'GET /admin/v1/jobs.csv', 'GET /admin/v1/jobs/live'),
  ...reads(
    'operator_key',
    '',
    'GET /admin/v1/jobs/:id',
    'DELETE /admin/v1/jobs/:id',
    'GET /admin/v1/requests/:id',
    'GET /admin/v1/vendors',
  ),
  ...reads('operator_key', '', 'GET /admin/v1/models', 'GET /admin/v1/queues', 'GET /console/queues{/*path}'),
];

/** Routes that are sockets: see socket-frames.ts. */
export const socketRoutes: readonly string[] = ['GET /v1/responses', 'GET /v1/jobs/:id/ws'];
