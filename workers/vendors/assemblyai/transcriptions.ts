import { ApiError } from '../../../shared/errors.ts';
import type { HttpClient } from '../../http/http-client.ts';
import { isObject, type JsonObject, parseObject } from '../support/json-object.ts';
import { readVendorError } from '../support/read-vendor-error.ts';
import { type Transcript, type TranscriptSegment, transcriptAnswer } from '../support/transcript-answer.ts';
import {
  needsSegments,
  readTranscriptionRequest,
  type TranscriptionRequest,
} from '../support/transcription-request.ts';
import { awaitTask, beginTask, unknownOutcome } from '../support/vendor-task-calls.ts';
import type { VendorCall, VendorMethod } from '../vendor.ts';
import { composeTranscript } from './request.ts';

/** A transcript's error message if the audio is at fault (https://www.assemblyai.com/docs/guides/common_errors_and_solutions). */
const faultyAudio = /transcod|does not (appear to )?contain|audio (duration|file)|no spoken audio|speech threshold/i;

/**
 * Transcriptions (https://www.assemblyai.com/docs/api-reference/transcripts/submit, read 2026-11-21): the file is uploaded as it
 * is read, its transcript is started and awaited inside the call. For its fields see ./request.ts.
 * @param secret that no error may contain
 */
export function assemblyAiTranscriptions(http: HttpClient, secret: string): VendorMethod {
  return async (call) => {
    const request = readTranscriptionRequest(call);
    // Composed before the upload, so that a refused request costs nothing.
    const fields = composeTranscript(call.model, request);
    const audioUrl = await upload(http, call, request);
    const { signal, silenceMs, holder } = call;
    const body = JSON.stringify({ ...fields, audio_url: audioUrl });
    const { id } = await beginTask(http, { path: '/transcript', body, signal, silenceMs });
    if (typeof id !== 'string' || !/^[\w-]+$/.test(id)) {
      throw unknownOutcome("The model's vendor began, but did not say what its transcript is called.");
    }
    const get = (path: string) => () => http.get({ path, notFound: unknownTranscript, signal, silenceMs, holder });
    const transcript = await awaitTask(call, {
      ask: get(`/transcript/${id}`),
      read: (answer) => readTranscript(answer, secret),
    });
    if (!needsSegments(request) || request.format === 'diarized_json') return transcriptAnswer(request, transcript);
    // Utterances name the speakers; without speakers the vendor has the sentences at a separate path.
    const segments = await awaitTask(call, { ask: get(`/transcript/${id}/sentences`), read: readSentences });
    return transcriptAnswer(request, { ...transcript, segments });
  };
}

const unknownTranscript = "The model's vendor does not know the transcript.";

/** @returns the address that the vendor has given the file */
async function upload(
  http: HttpClient,
  { files, signal, silenceMs }: VendorCall,
  { file }: TranscriptionRequest,
): Promise<string> {
  const body = { type: 'application/octet-stream', ...(await files.open(file)) };
  try {
    const { upload_url: url } = parseObject(await http.post({ path: '/upload', body, signal, silenceMs }));
    if (typeof url === 'string') return url;
  } finally {
    // A call that fails before it is sent leaves the file open.
    body.content.destroy();
  }
  throw new ApiError('server_error', "The model's vendor took the file, but did not say where it is.");
}

/** The result of a transcript; undefined while it runs. @throws ApiError for one that failed */
function readTranscript({ status, error, ...transcript }: JsonObject, secret: string): Transcript | undefined {
  switch (status) {
    case 'queued':
    case 'processing':
      return undefined;
    case 'completed':
      return toTranscript(transcript);
    case 'error': {
      const { message: reason } = readVendorError(JSON.stringify({ error }), secret);
      if (reason !== null && faultyAudio.test(reason)) {
        throw new ApiError('invalid_request_error', reason, { param: 'file', isQuoted: true });
      }
      throw new ApiError('server_error', reason ?? "The model's vendor could not do it.", {
        isQuoted: reason !== null,
      });
    }
    default:
      throw new ApiError('server_error', "The model's vendor answered with a transcript of an unknown status.");
  }
}

/** The text of a file without speech is null. */
function toTranscript({ text, language_code: language, audio_duration: duration, utterances, words }: JsonObject) {
  return {
    text: typeof text === 'string' ? text : '',
    language: typeof language === 'string' ? language : undefined,
    duration: typeof duration === 'number' ? duration : undefined,
    segments: segmentsOf(utterances),
    words: segmentsOf(words).map(({ text: word, start, end }) => ({ word, start, end })),
  };
}

function readSentences({ sentences }: JsonObject): readonly TranscriptSegment[] {
  if (!Array.isArray(sentences)) {
    throw unknownOutcome("The model's vendor has made the transcript, but did not answer with its sentences.");
  }
  return segmentsOf(sentences);
}

/** Segments of utterances, sentences and words alike; AssemblyAI's times are milliseconds. */
function segmentsOf(list: unknown): readonly TranscriptSegment[] {
  return (Array.isArray(list) ? list.filter(isObject) : []).map(({ text, start, end, speaker }) => ({
    text: String(text ?? ''),
    start: Number(start ?? 0) / 1000,
    end: Number(end ?? start ?? 0) / 1000,
    speaker: typeof speaker === 'string' ? speaker : undefined,
  }));
}
