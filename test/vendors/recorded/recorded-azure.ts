import type { ServerResponse } from 'node:http';
import { type ReceivedRequest, sendJson, sendStream } from '../contracts/fixture-vendor.ts';
import { chunk, completion, completionBody, events, usageChunk } from './recorded-openai.ts';
import { recorded, responseObject, usage, wireEvents, written } from './recorded-responses.ts';

/**
 * Azure OpenAI's wire, written after its documentation (read on 2026-11-21):
 * https://learn.microsoft.com/azure/ai-foundry/openai/concepts/content-filter and …/concepts/content-streaming (what its
 * filters add to chats, and their error), …/openai/reference-preview-latest (audio and images, `api-version=preview`),
 * …/openai/concepts/video-generation (videos, as OpenAI has them), …/openai/reference (the dated API).
 */
type Fields = Record<string, unknown>;

export const apiKey = 'azure-key-0123456789abcdef';
export const deployment = 'my-deployment';

const safe = { filtered: false, severity: 'safe' };
const filters = { hate: safe, self_harm: safe, sexual: safe, violence: safe };

/** What the filters found in the prompt: the first chunk of a stream, without a choice. */
export const promptResults = { prompt_filter_results: [{ prompt_index: 0, content_filter_results: filters }] };
export const promptChunk = chunk([], promptResults);

/** What the asynchronous filter says after the text that it is about, without a delta. */
export const lateResults = {
  index: 0,
  finish_reason: null,
  content_filter_results: filters,
  content_filter_offsets: { check_offset: 44, start_offset: 44, end_offset: 198 },
};
export const lateChunk: Fields = { id: '', object: '', created: 0, model: '', choices: [lateResults], usage: null };

/** A chunk as Azure sends it, with what the filters found in each choice. */
export function filtered(sent: Fields): Fields {
  const choices = sent.choices as Fields[];
  return { ...sent, choices: choices.map((choice) => ({ content_filter_results: filters, ...choice })) };
}

const [choice] = completionBody.choices;
/** A held answer. */
export const filteredBody = {
  ...completionBody,
  ...promptResults,
  choices: [{ ...choice, content_filter_results: filters }],
};
export const filteredCompletion = { ...completion, ...filteredBody };

export function azureError(code: string, message: string, more: Fields = {}): string {
  return JSON.stringify({ error: { code, message, ...more } });
}

/** The error of a prompt that the filters would not have. */
export const filterError = azureError('content_filter', "The response was filtered by Azure OpenAI's policy.", {
  type: null,
  param: 'prompt',
  status: 400,
  innererror: {
    code: 'ResponsibleAIPolicyViolation',
    content_filter_result: { ...filters, hate: { filtered: true, severity: 'high' } },
  },
});

export const speechBytes = Buffer.from('ID3 the very bytes of an mp3');
export const png = Buffer.concat([Buffer.from('89504e470d0a1a0a', 'hex'), Buffer.from('the rest of an image')]);
export const film = Buffer.concat([Buffer.from('0000001866747970', 'hex'), Buffer.alloc(3000, 7)]);
export const video = {
  id: 'video_68f10985d6c4819097007665bdcfba5f',
  object: 'video',
  created_at: 1760627077,
  status: 'completed',
  model: deployment,
  progress: 100,
  seconds: '4',
  size: '720x1280',
  completed_at: 1760627863,
  expires_at: 1760714196,
  remixed_from_video_id: null,
  error: null,
};
export const spoken = recorded('plain text');
export const responseBody = responseObject(spoken.status, { output: spoken.output, usage, incomplete_details: null });

/** What belongs to the v1 API only. */
const v1Only = /^\/(responses|videos)/;
/** What the v1 API has in preview. */
const previewed = /^\/(audio|images)\//;

/** The path behind the API's own, its deployment, and whether its version is one that Azure takes for it. */
function readPath({ url = '', body }: ReceivedRequest): {
  path: string;
  deployment: string | undefined;
  isKnown: boolean;
} {
  const { pathname, searchParams } = new URL(url, 'http://host');
  const version = searchParams.get('api-version');
  const [, dated, rest] = /^\/openai\/deployments\/([^/]+)(\/.*)$/.exec(pathname) ?? [];
  if (rest !== undefined) {
    const isKnown = /^\d{4}-\d\d-\d\d(-preview)?$/.test(version ?? '') && !v1Only.test(rest);
    return { path: rest, deployment: dated, isKnown };
  }
  const [, path = ''] = /^\/openai\/v1(\/.*)$/.exec(pathname) ?? [];
  const named = /"model":\s*"([^"]*)"|name="model"\r\n\r\n([^\r]*)/.exec(body);
  const isKnown = path !== '' && (previewed.test(path) ? version === 'preview' : version === null);
  return { path, deployment: named?.[1] ?? named?.[2], isKnown };
}

/** Answers as Azure does: by its key, its deployment's name, and under the addresses that it has. */
export function answerAsAzure(response: ServerResponse, request: ReceivedRequest): void {
  if (request.headers['api-key'] !== apiKey || request.headers.authorization !== undefined) {
    sendJson(response, 401, azureError('401', 'Access denied due to invalid subscription key or wrong API endpoint.'));
    return;
  }
  const { path, deployment: named, isKnown } = readPath(request);
  if (!isKnown) {
    sendJson(response, 404, azureError('404', 'Resource not found'));
  } else if (named !== undefined && named !== deployment) {
    sendJson(response, 404, azureError('DeploymentNotFound', 'The API deployment for this resource does not exist.'));
  } else {
    answerWell(response, request, path);
  }
}

function answerWell(response: ServerResponse, { method, body }: ReceivedRequest, path: string): void {
  const send = (answer: object): void => sendJson(response, 200, JSON.stringify(answer));
  const isStream = body.includes('"stream":true');
  if (path === '/chat/completions') {
    const chunks = [promptChunk, filtered(chunk([{ delta: { role: 'assistant', content: 'Hi' } }])), lateChunk];
    const end = [filtered(chunk([{ delta: {}, finish_reason: 'stop' }])), usageChunk];
    if (isStream) sendStream(response, [events([...chunks, ...end])]);
    else send(filteredCompletion);
  } else if (path === '/completions') {
    const choices = [{ index: 0, text: 'Hi', logprobs: null, finish_reason: 'stop', content_filter_results: filters }];
    send({ ...completion, object: 'text_completion', ...promptResults, choices });
  } else if (path === '/embeddings') {
    const data = [{ object: 'embedding', index: 0, embedding: [0.5, -0.25] }];
    send({ object: 'list', data, model: deployment, usage: { prompt_tokens: 1, total_tokens: 1 } });
  } else if (path === '/images/generations' || path === '/images/edits') {
    const content_filter_results = { ...filters, profanity: { detected: false, filtered: false } };
    send({ created: 1713833628, data: [{ b64_json: png.toString('base64'), content_filter_results }] });
  } else if (path === '/audio/transcriptions' || path === '/audio/translations') {
    send({ text: 'Good day.' });
  } else if (path === '/audio/speech') {
    response.writeHead(200, { 'content-type': 'audio/mpeg' }).end(speechBytes);
  } else if (path === '/responses') {
    if (isStream) sendStream(response, [written(wireEvents(spoken))]);
    else send(responseBody);
  } else if (path.startsWith('/videos')) {
    if (path.endsWith('/content')) response.writeHead(200, { 'content-type': 'video/mp4' }).end(film);
    else send(method === 'DELETE' ? { id: video.id, object: 'video.deleted', deleted: true } : video);
  } else {
    sendJson(response, 404, azureError('404', 'Resource not found'));
  }
}
