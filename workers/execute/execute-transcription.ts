import type { RoutedModel } from '../../shared/catalogue/catalogue.ts';
import { hasTokenPrice } from '../../shared/money/cost.ts';
import { hasCounts, readTokenCounts } from '../../shared/money/token-counts.ts';
import { estimateTranscript } from '../usage/estimate-media.ts';
import { requestText } from '../vendors/request-body.ts';
import type { VendorAnswer } from '../vendors/vendor.ts';
import { type Execute, methodOf } from './execution.ts';

/**
 * Transcripts and translations. Some vendors (Groq) tell the length of the audio in timed formats alone: if it is what the model is
 * charged by, one of these is requested. OpenAI tells it of transcripts with speakers, which it bills by tokens: they are estimated.
 */
export const executeTranscription: Execute = async ({ vendor, row, call, sink }) => {
  const { transcription, prices } = row;
  const isTimed = transcription?.timestamps === true && prices?.second !== undefined && !hasTokenPrice(prices);
  const request = isTimed ? `{"is_timed":true,${requestText(call.request).slice(1)}` : call.request;
  return withTokens(row, await methodOf(vendor, 'transcribe')({ ...call, request }, sink));
};

/**
 * The answer with estimated tokens, if only they have a price and only the length of the audio is known. A usage that does not count the
 * audio is as good as none: it would cost next to nothing.
 */
function withTokens({ prices = {} }: RoutedModel, answer: VendorAnswer): VendorAnswer {
  const { body, usage, quantities } = answer;
  const seconds = typeof usage?.seconds === 'number' ? usage.seconds : quantities?.seconds;
  const isCounted = usage !== null && hasCounts(usage, false);
  const isTimed = seconds !== undefined && prices.second !== undefined;
  if (isCounted || isTimed || !hasTokenPrice(prices)) return answer;
  if (seconds === undefined) return hasInput(usage) ? answer : { ...answer, usage: null };
  const { text } = JSON.parse(body) as { text: string };
  return { ...answer, usage: { ...estimateTranscript(text, seconds), seconds } };
}

function hasInput(usage: VendorAnswer['usage']): boolean {
  return usage !== null && (readTokenCounts(usage, false)?.input ?? 0) > 0;
}
