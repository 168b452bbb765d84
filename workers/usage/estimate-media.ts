import type { ImageJob } from '../../shared/capabilities/image.ts';
import type { SpeechJobRequest } from '../../shared/capabilities/speech.ts';
import { framesInLog } from '../../shared/jobs/answer-log.ts';
import type { JobState } from '../../shared/jobs/job-state.ts';
import { hasTokenPrice, type Prices } from '../../shared/money/cost.ts';
import type { QueuedJob } from '../../shared/queue/queue.ts';
import type { JobAnswer, VendorUsage } from '../vendors/vendor.ts';
import type { WorkerContext } from '../worker-context.ts';
import { spokenCharacters } from './billed-quantities.ts';
import { requestOf } from './estimate-usage.ts';

/** Characters that are said in a second, and those of Chinese, Japanese and Korean, of which each is a syllable. */
const charactersPerSecond = 15;
const syllablesPerSecond = 4;
const firstSyllable = 0x2e80;
/** Tokens of a second: OpenAI counts 10 of audio in a request, 1,250 a minute of audio in an answer. Text has about 4. */
const heardPerSecond = 10;
const spokenPerSecond = 1250 / 60;
const textPerSecond = 4;
/** English, by OpenAI's own rule of thumb. */
const charactersPerToken = 4;
/** Output tokens of a partial image (https://platform.openai.com/docs/guides/image-generation). */
const tokensPerPartial = 100;
/** Input tokens of an image that is edited: 65, and 129 for each of two tiles; in high fidelity OpenAI adds 4,160 or more. */
const tokensPerInput = 323;
const tokensOfHighFidelity = 4160;
/** Maximum characters of a transcript that are read to estimate its length. */
const maxRead = 1024 * 1024;

/** How long a text takes to be said, in seconds. */
function secondsToSay(text: string): number {
  let seconds = 0;
  for (const character of text) {
    const isSyllable = (character.codePointAt(0) ?? 0) >= firstSyllable;
    seconds += 1 / (isSyllable ? syllablesPerSecond : charactersPerSecond);
  }
  return seconds;
}

/** The usage of a text that was spoken, by its length: for speech whose vendor has reported none. */
export function estimateSpeech({ input, instructions = '' }: SpeechJobRequest): VendorUsage {
  const read = Math.ceil((input.length + String(instructions).length) / charactersPerToken);
  const spoken = Math.ceil(secondsToSay(input) * spokenPerSecond);
  return { input_tokens: read, output_tokens: spoken, total_tokens: read + spoken, estimated: true };
}

/** The usage of a transcript, by its text and, if it is known, by the length of its audio. */
export function estimateTranscript(text: string, seconds = secondsToSay(text)): VendorUsage {
  const heard = Math.ceil(seconds * heardPerSecond);
  const written = Math.ceil(secondsToSay(text) * textPerSecond);
  return {
    type: 'tokens',
    input_tokens: heard,
    input_token_details: { audio_tokens: heard, text_tokens: 0 },
    output_tokens: written,
    total_tokens: heard + written,
    estimated: true,
  };
}

/**
 * What the caller of a speech, a transcript or streamed images has had before it ended it, by leaving or by its own deadline: of
 * speech the whole text, of a transcript the part in the log, of images the partial ones there. Undefined for every other job.
 */
export async function cutMedia(
  context: Pick<WorkerContext, 'redis' | 'blobs'>,
  job: QueuedJob,
  prices: Prices | undefined,
): Promise<Pick<JobAnswer, 'usage' | 'quantities'> | undefined> {
  const areTokensPriced = prices !== undefined && hasTokenPrice(prices);
  if (job.capability === 'image') {
    // An image that is not complete costs no price of one.
    return areTokensPriced
      ? { usage: await estimatePartials(context, job) }
      : { usage: null, quantities: { images: 0 } };
  }
  if (job.capability === 'speech') {
    const request = JSON.parse(await requestOf(context, job)) as SpeechJobRequest;
    const usage = areTokensPriced ? estimateSpeech(request) : null;
    return { usage, quantities: { characters: spokenCharacters(request) } };
  }
  if (job.capability !== 'transcription') return undefined;
  const { text, seconds } = await transcriptInLog(context, job.id);
  if (!areTokensPriced) return { usage: null, quantities: { seconds: seconds ?? secondsToSay(text) } };
  return { usage: estimateTranscript(text, seconds) };
}

/** The usage of the partial images in a job's log, of which no more count than it has requested, of its prompt and its images. */
async function estimatePartials(context: Pick<WorkerContext, 'redis' | 'blobs'>, job: QueuedJob): Promise<VendorUsage> {
  const { images, parameters } = JSON.parse(await requestOf(context, job)) as ImageJob;
  const { prompt, n, partial_images: partials, input_fidelity: fidelity } = parameters;
  const read = Math.ceil(String(prompt ?? '').length / charactersPerToken);
  const inputs = images.length + (job.uploads ?? []).filter(({ field }) => field !== 'mask').length;
  const seen = inputs * (tokensPerInput + (fidelity === 'high' ? tokensOfHighFidelity : 0));
  const made = tokensPerPartial * (await countDeltas(context, job.id, Number(n ?? 1) * Number(partials ?? 0)));
  return {
    input_tokens: read + seen,
    input_tokens_details: { text_tokens: read, image_tokens: seen },
    output_tokens: made,
    output_tokens_details: { text_tokens: 0, image_tokens: made },
    total_tokens: read + seen + made,
    estimated: true,
  };
}

/** The `delta` frames in a job's log, at most so many. */
async function countDeltas({ redis }: Pick<WorkerContext, 'redis'>, jobId: string, max: number): Promise<number> {
  let count = 0;
  if (max === 0) return count;
  for await (const { type } of framesInLog(redis, jobId)) {
    if (type === 'delta') count += 1;
    if (count >= max) break;
  }
  return Math.min(count, max);
}

/** Whether the caller has ended a job whose answer had begun. Only the caller's deadline ends a job from elsewhere as too late. */
export function isCutByCaller({ outcome, errorCode, hasDelta }: Pick<JobState, 'outcome' | 'errorCode' | 'hasDelta'>) {
  return hasDelta && (outcome === 'cancelled' || (outcome === 'failed' && errorCode === 'timeout'));
}

/** The text of a transcript in its log, and, if its segments tell that, the seconds heard so far. */
async function transcriptInLog(
  { redis }: Pick<WorkerContext, 'redis'>,
  jobId: string,
): Promise<{ text: string; seconds: number | undefined }> {
  let [deltas, segments, read] = ['', '', 0];
  let seconds: number | undefined;
  for await (const { type, isBlob, text: frame } of framesInLog(redis, jobId)) {
    if (type !== 'delta' || isBlob) continue;
    read += frame.length;
    const { delta, text, end } = JSON.parse(frame) as { delta?: unknown; text?: unknown; end?: unknown };
    if (typeof delta === 'string') deltas += delta;
    if (typeof text === 'string') segments += text;
    if (typeof end === 'number' && end > (seconds ?? 0)) seconds = end;
    if (read >= maxRead) break;
  }
  return { text: deltas || segments, seconds };
}
