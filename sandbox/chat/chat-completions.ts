import type { Exchange } from '../exchange.ts';
import { OpenCall } from '../open-call.ts';
import type { FaultOptions } from '../request-options.ts';
import { nextRequestId, sendError, sendJson } from '../response.ts';
import { composeAnswer } from './chat-answer.ts';
import { readChatRequest } from './chat-request.ts';
import { completionEvents } from './completion-events.ts';
import { type Completion, completionBody } from './completion-wire.ts';
import { faultError, faultyCompletion, faultyEvents } from './stream-faults.ts';
import { holdAnswer, Pace, streamAnswer } from './timed-answer.ts';
import { countUsage } from './usage.ts';

/** `POST /v1/chat/completions` */
export function chatCompletions(exchange: Exchange): void {
  const { request, response, body, state } = exchange;
  const chat = readChatRequest(body, request.headers);
  const id = nextRequestId();
  const answer = composeAnswer(chat, id);
  const usage = countUsage(chat, answer, state.promptCache);
  const created = Math.floor(Date.now() / 1000);
  const completion = { id: `chatcmpl-${id}`, created, request: chat, answer, usage };
  const fault = state.faults.due(chat.options.fault);
  const pace = new Pace(chat.options.firstTokenMilliseconds, chat.options.tokensPerSecond ?? answer.tokensPerSecond);
  if (!chat.stream && !pace.takesTime && fault === undefined && !state.journal.keepsEntries) {
    sendJson(response, 200, completionBody(completion), id);
    return;
  }
  const call = new OpenCall(response, state.journal, {
    testId: chat.testId,
    model: chat.model.id,
    stream: chat.stream,
  });
  answerInTime(call, completion, pace, fault).catch((error) => {
    console.error(error);
    response.destroy();
  });
}

async function answerInTime(
  call: OpenCall,
  completion: Completion,
  pace: Pace,
  fault: FaultOptions | undefined,
): Promise<void> {
  await call.pause(pace.firstTokenMilliseconds);
  if (call.closed) return;
  if (fault !== undefined && (await failBeforeHeaders(call, completion, fault))) return;
  const shown = fault === undefined ? completion : faultyCompletion(completion, fault);
  if (!completion.request.stream) {
    const body = completionBody(shown, fault?.kind !== 'no_usage');
    await holdAnswer(call, body, shown.usage.completion_tokens, pace, fault);
    return;
  }
  const events = completionEvents(shown);
  await streamAnswer(call, fault === undefined ? events : faultyEvents(events, fault, call), pace, fault);
}

/** Handles faults that prevent any answer; returns false for every other fault. */
async function failBeforeHeaders(call: OpenCall, completion: Completion, fault: FaultOptions): Promise<boolean> {
  const error = fault.kind === 'error' || fault.kind === 'rate_limit';
  const midAnswer = fault.afterTokens !== undefined && (completion.request.stream || !error);
  if (midAnswer || !(error || fault.kind === 'silence' || fault.kind === 'reset')) return false;
  call.meetFault(fault.kind, fault.kind !== 'silence');
  if (error) sendError(call.response, faultError(fault));
  else if (fault.kind === 'silence') await call.silence();
  else await call.reset();
  return true;
}
