import {
  type Answer,
  beginStream,
  type ReceivedRequest,
  sendJson,
  sendStream,
} from '../vendors/contracts/fixture-vendor.ts';

/** The tokens of each answer. */
export const counts = { prompt: 20, completion: 10 };

type Json = Record<string, unknown>;

/** What the vendor says of the tier: nothing, or this, whatever it is. */
export type Said = { readonly service_tier?: unknown };

/** A prompt that has the vendor say this. */
export function saying(said: Said): string {
  return `SAY ${JSON.stringify(said)}`;
}

/** What a request's prompt has the vendor say. */
function saidIn({ body }: ReceivedRequest): Said {
  const [, prompt = 'SAY {}'] = /"(SAY (?:[^"\\]|\\.)*)"/.exec(body) ?? [];
  return JSON.parse((JSON.parse(`"${prompt}"`) as string).slice('SAY '.length));
}

/** The same as a chat's usage. */
export const usage = {
  ...{ prompt_tokens: counts.prompt, completion_tokens: counts.completion },
  total_tokens: counts.prompt + counts.completion,
};
const head = { id: 'c', created: 1, model: 'gpt-5' };
const sse = (data: Json) => `data: ${JSON.stringify(data)}\n\n`;

function chunk(delta: Json, said: Said, more: Json = {}): string {
  const choices = [{ index: 0, delta, finish_reason: null, ...more }];
  return sse({ ...head, object: 'chat.completion.chunk', choices, ...said });
}

/** A chat or a response of the vendor, held or streamed. */
function answerOf(request: ReceivedRequest): string | string[] {
  const { url, body } = request;
  const said = saidIn(request);
  if (url?.includes('enerateContent')) return geminiAnswer(url, said);
  const isStream = (JSON.parse(body) as { stream?: boolean }).stream === true;
  if (url?.endsWith('/responses')) {
    const content = [{ type: 'output_text', text: 'Matz', annotations: [] }];
    const item = { type: 'message', id: 'm', role: 'assistant', status: 'completed', content };
    const own = { input_tokens: counts.prompt, output_tokens: counts.completion, total_tokens: usage.total_tokens };
    const response = { ...head, object: 'response', status: 'completed', output: [item], usage: own, ...said };
    if (!isStream) return JSON.stringify(response);
    const begun = { ...response, status: 'in_progress', output: [], usage: null, service_tier: 'auto' };
    return [
      sse({ type: 'response.created', response: begun }),
      sse({ type: 'response.output_item.done', output_index: 0, item }),
      sse({ type: 'response.completed', response }),
    ];
  }
  const counted = body.includes('"user":"uncounted"') ? {} : { usage };
  if (!isStream) {
    const choices = [{ index: 0, message: { role: 'assistant', content: 'Matz' }, finish_reason: 'stop' }];
    return JSON.stringify({ ...head, object: 'chat.completion', choices, ...counted, ...said });
  }
  return [
    chunk({ role: 'assistant', content: '' }, said),
    ...['M', 'a', 't', 'z'].map((content) => chunk({ content }, said)),
    chunk({}, said, { finish_reason: 'stop' }),
    sse({ ...head, choices: [], ...counted, ...said }),
    'data: [DONE]\n\n',
  ];
}

/** The same on Gemini's wire. */
function geminiAnswer(url: string, { service_tier: tier }: Said): string | string[] {
  const metadata = { promptTokenCount: counts.prompt, candidatesTokenCount: counts.completion, totalTokenCount: 30 };
  const event = (text: string, more: Json = {}) => ({
    candidates: [{ content: { role: 'model', parts: [{ text }] }, index: 0, ...more }],
    usageMetadata: { ...metadata, ...(tier !== undefined && { serviceTier: tier }) },
  });
  if (!url.includes('stream')) return JSON.stringify(event('Matz', { finishReason: 'STOP' }));
  return [event('M'), event('at'), event('z', { finishReason: 'STOP' })].map(sse);
}

/**
 * Answers as a vendor that says of its service tier what the prompt has it say: chats, responses and Gemini's, held and streamed. The
 * user `endless` gets a stream that does not end, `uncounted` an answer without a usage.
 */
export const answerAsSaid: Answer = (response, request) => {
  const answer = answerOf(request);
  if (request.body.includes('"user":"endless"')) {
    beginStream(response);
    response.write(answer[0]);
    response.write(answer[1]);
  } else if (typeof answer === 'string') sendJson(response, 200, answer);
  else sendStream(response, answer);
};
