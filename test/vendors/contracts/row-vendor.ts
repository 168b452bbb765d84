import type { ServerResponse } from 'node:http';
import type { VendorRow } from '../../../shared/vendors/vendors.ts';
import { completion, errorBody, events, usage, usageChunk } from '../recorded/recorded-openai.ts';
import { type Answer, type ReceivedRequest, sendJson, sendStream } from './fixture-vendor.ts';

type Fields = Record<string, unknown>;

/** What a row says of fields, from the vendor's side: the names that it answers 400 to. */
function foreignFields({ chat = {} }: VendorRow): Set<string> {
  const { fields = {}, renamed = {}, streamOptions } = chat;
  const foreign = Object.keys(fields).filter((field) => fields[field] === 'rejected' || fields[field] === 'ignored');
  return new Set([...foreign, ...Object.keys(renamed), ...(streamOptions === false ? ['stream_options'] : [])]);
}

/** The field, or the role, for which the vendor of a row refuses a request. */
function refusedIn(row: VendorRow, request: Fields): string | undefined {
  const { type } = (request.response_format ?? {}) as { type?: string };
  const names = [...Object.keys(request), `response_format.${type}`];
  const foreign = foreignFields(row);
  const field = names.find((name) => foreign.has(name));
  if (field !== undefined) return field;
  const messages = request.messages as readonly { role: string; reasoning_content?: string }[];
  if (row.chat?.developerRole === false && messages.some(({ role }) => role === 'developer')) return 'messages';
  const isBehindTool = messages.some(({ role }, index) => role === 'user' && messages[index - 1]?.role === 'tool');
  if (row.chat?.userAfterTool === false && isBehindTool) return 'messages';
  const isRenamed = row.chat?.reasoning !== undefined;
  return isRenamed && messages.some((message) => 'reasoning_content' in message) ? 'messages' : undefined;
}

/** Refuses what the row says that its vendor does not know; answers whether it has. */
function refuses(row: VendorRow, response: ServerResponse, { body }: ReceivedRequest): boolean {
  const refused = refusedIn(row, JSON.parse(body) as Fields);
  if (refused === undefined) return false;
  sendJson(response, 400, errorBody(`Unknown: ${refused}.`, 'unknown_parameter', 'invalid_request_error', refused));
  return true;
}

/** Answers with a stream whose usage comes as the row says: when it is asked for, or always. */
export function rowStream(row: VendorRow, sent: readonly Fields[]): Answer {
  return (response, request) => {
    if (refuses(row, response, request)) return;
    const { stream_options: options } = JSON.parse(request.body) as { stream_options?: { include_usage?: boolean } };
    const isCounted = row.chat?.streamOptions === false || options?.include_usage === true;
    sendStream(response, [events([...sent, ...(isCounted ? [usageChunk] : [])])]);
  };
}

/** Answers with a whole completion, its message in the vendor's words. */
export function rowAnswer(row: VendorRow, message: Fields): Answer {
  const choices = [{ index: 0, message, logprobs: null, finish_reason: 'stop' }];
  return (response, request) => {
    if (!refuses(row, response, request)) sendJson(response, 200, JSON.stringify({ ...completion, choices, usage }));
  };
}

/** Thoughts and a text after them, as a row's vendor says them and as OpenAI's chunks and messages have them. */
export function reasoned({ chat }: VendorRow): {
  readonly sent: Fields[];
  readonly expected: Fields[];
  whole: RowWhole;
} {
  const thought = 'Let me think.';
  const text = '9.8 is more.';
  const expectedWhole = { role: 'assistant', content: text, reasoning_content: thought };
  switch (chat?.reasoning) {
    case 'reasoning':
      return {
        sent: [{ role: 'assistant', content: '', reasoning: thought }, { content: text }],
        expected: [{ role: 'assistant', content: '', reasoning_content: thought }, { content: text }],
        whole: { sent: { role: 'assistant', content: text, reasoning: thought }, expected: expectedWhole },
      };
    case 'thinking_parts': {
      const thinking = { type: 'thinking', thinking: [{ type: 'text', text: thought }] };
      const said = { type: 'text', text };
      return {
        sent: [{ role: 'assistant', content: [thinking] }, { content: [said] }],
        expected: [{ role: 'assistant', content: null, reasoning_content: thought }, { content: text }],
        whole: { sent: { role: 'assistant', content: [thinking, said] }, expected: expectedWhole },
      };
    }
    default: {
      const deltas = [{ role: 'assistant', content: null, reasoning_content: thought }, { content: text }];
      return { sent: deltas, expected: deltas, whole: { sent: expectedWhole, expected: expectedWhole } };
    }
  }
}

interface RowWhole {
  readonly sent: Fields;
  readonly expected: Fields;
}
