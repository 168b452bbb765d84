import type { StreamEvent } from '../chat/completion-events.ts';
import { type FaultWording, faultError } from '../chat/stream-faults.ts';
import type { FaultOptions } from '../request-options.ts';
import { announcedItem, finishedItem, logprobsOf, type PlannedItem, summaryPart, textPart } from './output-items.ts';
import { endedResponse, failedResponse, openResponse, type PlannedResponse } from './response-object.ts';

/** The events of one streamed response, numbered from 0. */
export class ResponseEvents implements FaultWording {
  readonly malformed = 'event: response.output_text.delta\ndata: {"type":"response.output_text.delta","del\n\n';
  readonly #response: PlannedResponse;
  /** The number of the next event. */
  #sequence = 0;

  constructor(response: PlannedResponse) {
    this.#response = response;
  }

  /** All events; OpenAI ends these streams without `[DONE]`. */
  *all(): Generator<StreamEvent> {
    const response = this.#response;
    yield* this.#event('response.created', { response: openResponse(response) });
    yield* this.#event('response.in_progress', { response: openResponse(response) });
    for (const [index, item] of response.items.entries()) yield* this.#itemEvents(item, index);
    yield* this.#event(response.isTruncated ? 'response.incomplete' : 'response.completed', {
      response: endedResponse(response),
    });
  }

  ending(fault: FaultOptions): string {
    const error = faultError(fault);
    if (fault.kind === 'failed_event') {
      return this.#text('response.failed', { response: failedResponse(this.#response, error) });
    }
    const { code, message, param } = error;
    return this.#text('error', { code, message, param });
  }

  /** A number is used up only once its event was written: a fault that replaces the event gets its number. */
  *#event(type: string, members: object, isToken = false): Generator<StreamEvent> {
    yield { text: this.#text(type, members), isToken };
    this.#sequence += 1;
  }

  #text(type: string, members: object): string {
    return `event: ${type}\ndata: ${JSON.stringify({ type, sequence_number: this.#sequence, ...members })}\n\n`;
  }

  *#itemEvents(item: PlannedItem, index: number): Generator<StreamEvent> {
    const { request } = this.#response;
    // Naming a tool counts as one token.
    yield* this.#event(
      'response.output_item.added',
      { output_index: index, item: announcedItem(item, request) },
      item.kind === 'call',
    );
    yield* this.#contentEvents(item, { item_id: item.id, output_index: index });
    yield* this.#event('response.output_item.done', { output_index: index, item: finishedItem(item, request) });
  }

  #contentEvents(item: PlannedItem, position: object): Iterable<StreamEvent> {
    switch (item.kind) {
      case 'reasoning':
        return this.#response.request.summarizes ? this.#summaryEvents(item, position) : hiddenTokens(item);
      case 'search':
        return this.#searchEvents(position);
      case 'message':
        return this.#messageEvents(item, position);
      case 'call':
        return item.call.kind === 'custom'
          ? this.#inputEvents('response.custom_tool_call_input', item, position, { input: item.tokens.join('') })
          : this.#inputEvents('response.function_call_arguments', item, position, {
              name: item.call.name,
              arguments: item.tokens.join(''),
            });
    }
  }

  *#summaryEvents(item: PlannedItem, itemPosition: object): Generator<StreamEvent> {
    const position = { ...itemPosition, summary_index: 0 };
    const text = item.tokens.join('');
    yield* this.#event('response.reasoning_summary_part.added', { ...position, part: summaryPart('') });
    for (const token of item.tokens) {
      yield* this.#event('response.reasoning_summary_text.delta', { ...position, delta: token }, true);
    }
    yield* this.#event('response.reasoning_summary_text.done', { ...position, text });
    yield* this.#event('response.reasoning_summary_part.done', { ...position, part: summaryPart(text) });
  }

  *#searchEvents(position: object): Generator<StreamEvent> {
    for (const state of ['in_progress', 'searching', 'completed']) {
      yield* this.#event(`response.web_search_call.${state}`, position);
    }
  }

  *#messageEvents(item: PlannedItem, itemPosition: object): Generator<StreamEvent> {
    const { topLogprobs } = this.#response.request.chat;
    const position = { ...itemPosition, content_index: 0 };
    const { tokens } = item;
    yield* this.#event('response.content_part.added', { ...position, part: textPart([], topLogprobs) });
    for (const token of tokens) {
      const logprobs = logprobsOf([token], topLogprobs);
      yield* this.#event('response.output_text.delta', { ...position, delta: token, logprobs }, true);
    }
    const logprobs = logprobsOf(tokens, topLogprobs);
    yield* this.#event('response.output_text.done', { ...position, text: tokens.join(''), logprobs });
    yield* this.#event('response.content_part.done', { ...position, part: textPart(tokens, topLogprobs) });
  }

  *#inputEvents(type: string, item: PlannedItem, position: object, whole: object): Generator<StreamEvent> {
    for (const token of item.tokens) yield* this.#event(`${type}.delta`, { ...position, delta: token }, true);
    yield* this.#event(`${type}.done`, { ...position, ...whole });
  }
}

/** Hidden reasoning takes its time, too. */
function* hiddenTokens(item: PlannedItem): Generator<StreamEvent> {
  for (let count = 0; count < item.tokens.length; count += 1) yield { text: '', isToken: true };
}
