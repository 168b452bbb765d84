import type { Exchange } from '../exchange.ts';
import { type FormRules, readForm } from '../form.ts';
import { answerMedia, eventText, type Part, sendParts, sendWhole } from '../media-answer.ts';
import { splitTokens } from '../tokens.ts';
import { AudioInspector } from './audio-inspector.ts';
import type { AudioFacts } from './audio-step.ts';
import { composeTranscript, type Transcript } from './transcript.ts';
import { transcriptBody, transcriptLogprobs } from './transcript-formats.ts';
import { readTranscription, type TranscriptionRequest } from './transcription-request.ts';

const formRules: FormRules<AudioFacts | undefined> = {
  maximumFileBytes: 25 * 1024 * 1024,
  maximumFiles: 2,
  inspect: () => new AudioInspector(),
};

/** Audio tokens per second of OpenAI's transcription models. */
const AUDIO_TOKENS_PER_SECOND = 10;

/** `POST /v1/audio/transcriptions` */
export function transcribe(exchange: Exchange): Promise<void> {
  return answer(exchange, false);
}

/** `POST /v1/audio/translations` */
export function translate(exchange: Exchange): Promise<void> {
  return answer(exchange, true);
}

async function answer(exchange: Exchange, isTranslation: boolean): Promise<void> {
  const form = await readForm(exchange.request, formRules);
  const request = readTranscription(form, exchange.request.headers, isTranslation);
  const transcript = composeTranscript(request.facts, request);
  answerMedia(exchange, request, (delivery) => {
    if (request.stream) {
      return sendParts(delivery, 'text/event-stream; charset=utf-8', transcriptEvents(transcript, request));
    }
    const { contentType, body } = transcriptBody(transcript, request);
    return sendWhole(delivery, contentType, body, transcript.tokens.length);
  });
}

/** One delta per token, then the whole text once more. */
async function* transcriptEvents(transcript: Transcript, request: TranscriptionRequest): AsyncGenerator<Part> {
  const logprobsOf = (tokens: readonly string[]) => (request.logprobs ? { logprobs: transcriptLogprobs(tokens) } : {});
  for (const token of transcript.tokens) {
    yield { data: eventText({ type: 'transcript.text.delta', delta: token, ...logprobsOf([token]) }), counts: true };
  }
  const { text, tokens } = transcript;
  const usage = streamUsage(transcript, request);
  yield { data: eventText({ type: 'transcript.text.done', text, ...logprobsOf(tokens), usage }), counts: false };
}

/** A stream's usage is in tokens: OpenAI's event has no other type. */
function streamUsage({ seconds, tokens }: Transcript, { prompt }: TranscriptionRequest) {
  const audio = Math.ceil(seconds * AUDIO_TOKENS_PER_SECOND);
  const text = splitTokens(prompt ?? '').length;
  return {
    type: 'tokens',
    input_tokens: audio + text,
    input_token_details: { text_tokens: text, audio_tokens: audio },
    output_tokens: tokens.length,
    total_tokens: audio + text + tokens.length,
  };
}
