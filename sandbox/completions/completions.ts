import type { Exchange } from '../exchange.ts';
import { answerMedia, meetsInAnswer, sendParts, sendWhole } from '../media-answer.ts';
import { nextRequestId } from '../response.ts';
import { composeCompletion } from './completion-answer.ts';
import { readCompletionRequest } from './completion-request.ts';
import { completionBody, completionParts } from './completion-wire.ts';

/** `POST /v1/completions`, the legacy endpoint. */
export function createCompletion(exchange: Exchange): void {
  const { body, request, state } = exchange;
  const asked = readCompletionRequest(body, request.headers);
  const answer = composeCompletion(asked, state.promptCache);
  const created = Math.floor(Date.now() / 1000);
  const completion = { id: `cmpl-${nextRequestId()}`, created, request: asked, answer };
  const { options } = asked;
  const tokensPerSecond = options.tokensPerSecond ?? answer.tokensPerSecond;
  answerMedia(exchange, { ...asked, options: { ...options, tokensPerSecond } }, async (delivery) => {
    const reportsUsage = !meetsInAnswer(delivery, 'no_usage');
    if (!asked.stream) {
      const tokens = answer.usage.completion_tokens;
      await sendWhole(delivery, 'application/json', completionBody(completion, reportsUsage), tokens);
      return;
    }
    const isUnfinished = meetsInAnswer(delivery, 'no_done');
    const shown = reportsUsage ? completion : { ...completion, request: { ...asked, includeUsage: false } };
    const parts = completionParts(shown, !isUnfinished);
    await sendParts(
      { ...delivery, fault: isUnfinished || !reportsUsage ? undefined : delivery.fault },
      'text/event-stream; charset=utf-8',
      parts,
    );
  });
}
