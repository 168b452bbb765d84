import type { ChoiceAnswer, ToolCall } from './chat-answer.ts';
import type { Completion } from './completion-wire.ts';
import { tokenLogprob } from './logprobs.ts';

/** One whole SSE event. */
export interface StreamEvent {
  text: string;
  /** True if it contains a token: counted in `usage`. */
  isToken: boolean;
}

/** The last event of every stream that ends normally. */
export const doneEvent: StreamEvent = { text: 'data: [DONE]\n\n', isToken: false };

/** All events of a streamed answer; the tokens of several choices alternate. */
export function* completionEvents(completion: Completion): Generator<StreamEvent> {
  const { id, created, request, answer, usage } = completion;
  const head = `data: {"id":"${id}","object":"chat.completion.chunk","created":${created},"model":"${request.model.id}","service_tier":"default","system_fingerprint":"fp_sandbox",`;
  // With include_usage every chunk has the field, and only the last one has a value in it.
  const tail = request.includeUsage ? ',"usage":null}\n\n' : '}\n\n';
  const running = answer.choices.map((choice, index) => {
    return choiceEvents(choice, `${head}"choices":[{"index":${index},"delta":`, tail, request.topLogprobs);
  });
  if (running.length === 1) yield* running[0] as Generator<StreamEvent>;
  else yield* inTurns(running);
  if (request.includeUsage) {
    yield { text: `${head}"choices":[],"usage":${JSON.stringify(usage)}}\n\n`, isToken: false };
  }
  yield doneEvent;
}

function* inTurns(running: Generator<StreamEvent>[]): Generator<StreamEvent> {
  for (let left = running; left.length > 0; ) {
    const unfinished: Generator<StreamEvent>[] = [];
    for (const events of left) {
      const { value, done } = events.next();
      if (done) continue;
      yield value;
      unfinished.push(events);
    }
    left = unfinished;
  }
}

function* choiceEvents(
  choice: ChoiceAnswer,
  head: string,
  tail: string,
  topLogprobs: number | undefined,
): Generator<StreamEvent> {
  const end = `,"logprobs":null,"finish_reason":null}]${tail}`;
  const content = choice.content === null ? 'null' : '""';
  yield { text: `${head}{"role":"assistant","content":${content},"refusal":null}${end}`, isToken: false };
  for (const token of choice.reasoning) {
    yield { text: `${head}{"reasoning_content":${JSON.stringify(token)}}${end}`, isToken: true };
  }
  for (const token of choice.content ?? []) {
    const tokenEnd = topLogprobs === undefined ? end : endWithLogprobs(token, topLogprobs, tail);
    yield { text: `${head}{"content":${JSON.stringify(token)}}${tokenEnd}`, isToken: true };
  }
  for (const [index, call] of choice.calls.entries()) {
    for (const delta of callDeltas(call, index)) {
      yield { text: `${head}${JSON.stringify(delta)}${end}`, isToken: true };
    }
  }
  const stopped = choice.stopText === undefined ? '' : `,"stop_reason":${JSON.stringify(choice.stopText)}`;
  yield {
    text: `${head}{},"logprobs":null,"finish_reason":"${choice.finishReason}"${stopped}}]${tail}`,
    isToken: false,
  };
}

function endWithLogprobs(token: string, topLogprobs: number, tail: string): string {
  const content = JSON.stringify([tokenLogprob(token, topLogprobs)]);
  return `,"logprobs":{"content":${content},"refusal":null},"finish_reason":null}]${tail}`;
}

/** A call's name comes first, with empty arguments; then the arguments, token by token. */
function* callDeltas(call: ToolCall, index: number) {
  const { id, kind, name } = call;
  if (kind === 'legacy') {
    yield { function_call: { name, arguments: '' } };
    for (const token of call.input) yield { function_call: { arguments: token } };
  } else if (kind === 'custom') {
    // In OpenAI's reference the only streamed `type` is function: the member shows the kind of call.
    yield { tool_calls: [{ index, id, custom: { name, input: '' } }] };
    for (const token of call.input) yield { tool_calls: [{ index, custom: { input: token } }] };
  } else {
    yield { tool_calls: [{ index, id, type: 'function', function: { name, arguments: '' } }] };
    for (const token of call.input) yield { tool_calls: [{ index, function: { arguments: token } }] };
  }
}
