import type { ChoiceAnswer, ToolCall } from '../chat/chat-answer.ts';
import { lastUserText } from '../chat/chat-message.ts';
import { tokenLogprob } from '../chat/logprobs.ts';
import { textStart } from '../tokens.ts';
import { sealReasoning } from './encrypted-reasoning.ts';
import type { ResponseRequest } from './response-request.ts';

/** One item of a response's output, as tokens. */
export type PlannedItem = { id: string; isWhole: boolean; tokens: readonly string[] } & (
  | { kind: 'reasoning' }
  | { kind: 'search'; query: string }
  | { kind: 'message' }
  | { kind: 'call'; call: ToolCall }
);

const QUERY_CHARACTERS = 100;

/**
 * Converts an answer of the sandbox's chat to output items of a response.
 * @param digits the response's own, hexadecimal: the ids of its items are derived from them.
 */
export function planItems(request: ResponseRequest, answer: ChoiceAnswer, digits: string): PlannedItem[] {
  const items: PlannedItem[] = [];
  const idOf = (prefix: string) => `${prefix}_${digits}${items.length.toString(16).padStart(4, '0')}`;
  const isWhole = answer.finishReason !== 'length';
  const add = (item: PlannedItem) => items.push(item);
  if (answer.reasoning.length > 0) {
    add({ kind: 'reasoning', id: idOf('rs'), isWhole: true, tokens: answer.reasoning });
  }
  if (request.forcesSearch) {
    const query = textStart(lastUserText(request.chat.messages), QUERY_CHARACTERS);
    add({ kind: 'search', id: idOf('ws'), isWhole: true, tokens: [], query });
  }
  for (const call of answer.calls) {
    add({ kind: 'call', id: idOf(call.kind === 'custom' ? 'ctc' : 'fc'), isWhole: true, tokens: call.input, call });
  }
  // A limit reached while reasoning leaves no message, not an empty one.
  if (answer.content !== null && (isWhole || answer.content.length > 0)) {
    add({ kind: 'message', id: idOf('msg'), isWhole: true, tokens: answer.content });
  }
  const last = items.at(-1);
  // The limit truncates the last item.
  if (last !== undefined) last.isWhole = isWhole;
  return items;
}

/** An item as announced: still empty. */
export function announcedItem(item: PlannedItem, request: ResponseRequest): object {
  const status = 'in_progress';
  switch (item.kind) {
    case 'reasoning':
      return { id: item.id, type: 'reasoning', status, ...sealedContent(item, '', request), summary: [] };
    case 'search':
      return { id: item.id, type: 'web_search_call', status, action: searchAction(item.query, request) };
    case 'message':
      return { id: item.id, type: 'message', status, role: 'assistant', content: [] };
    case 'call':
      return callItem(item.id, item.call, '', status);
  }
}

/** An item at its end. */
export function finishedItem(item: PlannedItem, request: ResponseRequest): object {
  const status = item.isWhole ? 'completed' : 'incomplete';
  switch (item.kind) {
    case 'reasoning': {
      const text = item.tokens.join('');
      const summary = request.summarizes ? [summaryPart(text)] : [];
      return { id: item.id, type: 'reasoning', status, ...sealedContent(item, text, request), summary };
    }
    case 'search':
      return { id: item.id, type: 'web_search_call', status: 'completed', action: searchAction(item.query, request) };
    case 'message': {
      const content = [textPart(item.tokens, request.chat.topLogprobs)];
      return { id: item.id, type: 'message', status, role: 'assistant', content };
    }
    case 'call':
      return callItem(item.id, item.call, item.tokens.join(''), status);
  }
}

/**
 * A part of a message's content.
 * @param topLogprobs undefined: no log probabilities requested.
 */
export function textPart(tokens: readonly string[], topLogprobs: number | undefined): object {
  const text = tokens.join('');
  return { type: 'output_text', text, annotations: [], logprobs: logprobsOf(tokens, topLogprobs) };
}

/** The log probabilities of a text; empty if not requested. */
export function logprobsOf(tokens: readonly string[], topLogprobs: number | undefined): object[] {
  return topLogprobs === undefined ? [] : tokens.map((token) => tokenLogprob(token, topLogprobs));
}

/** A part of a reasoning item's summary. */
export function summaryPart(text: string): object {
  return { type: 'summary_text', text };
}

function sealedContent(item: PlannedItem, text: string, request: ResponseRequest): object {
  return request.include.has('reasoning.encrypted_content') ? { encrypted_content: sealReasoning(item.id, text) } : {};
}

function searchAction(query: string, request: ResponseRequest): object {
  const sources = request.include.has('web_search_call.action.sources') ? { sources: [] } : {};
  return { type: 'search', query, queries: [query], ...sources };
}

function callItem(id: string, call: ToolCall, input: string, status: string): object {
  const named = { id, call_id: call.id, name: call.name, status };
  return call.kind === 'custom'
    ? { ...named, type: 'custom_tool_call', input }
    : { ...named, type: 'function_call', arguments: input };
}
