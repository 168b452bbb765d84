import type { IncomingHttpHeaders } from 'node:http';
import type { Form } from '../form.ts';
import { findModel, type SandboxModel } from '../models.ts';
import { type CallOptions, RequestFields, readCallOptions } from '../request-fields.ts';
import { byteFaults, jsonFaults } from '../request-options.ts';
import { invalidParameter, WireError } from '../wire-error.ts';
import type { AudioFacts } from './audio-step.ts';

const formats = ['json', 'text', 'srt', 'verbose_json', 'vtt'] as const;

/** A validated transcription or translation. */
export interface TranscriptionRequest extends CallOptions {
  model: SandboxModel;
  isTranslation: boolean;
  facts: AudioFacts;
  /** ISO 639-1. */
  language: string | undefined;
  prompt: string | undefined;
  format: (typeof formats)[number];
  temperature: number;
  granularities: readonly ('word' | 'segment')[];
  logprobs: boolean;
  stream: boolean;
}

const commonNames = ['prompt', 'response_format', 'temperature'];
const vadNames = ['type', 'prefix_padding_ms', 'silence_duration_ms', 'threshold'].map(
  (name) => `chunking_strategy[${name}]`,
);
const transcriptionNames = [
  ...commonNames,
  ...['language', 'languages', 'keywords', 'timestamp_granularities', 'stream', 'include', 'chunking_strategy'],
  ...vadNames,
];

/** Parses `POST /v1/audio/transcriptions` or `…/translations`. */
export function readTranscription(
  form: Form<AudioFacts | undefined>,
  headers: IncomingHttpHeaders,
  isTranslation: boolean,
): TranscriptionRequest {
  const fields = RequestFields.fromForm(form.fields);
  fields.allowOnly(isTranslation ? commonNames : transcriptionNames);
  const format = fields.choice('response_format', formats) ?? 'json';
  const stream = fields.flag('stream') ?? false;
  const granularities = fields.choices('timestamp_granularities', ['word', 'segment']);
  const logprobs = fields.choices('include', ['logprobs']).length > 0;
  checkChunking(fields);
  refuse(stream && format !== 'json' && format !== 'text', 'response_format', `'${format}' cannot be streamed.`);
  refuse(
    granularities.length > 0 && format !== 'verbose_json',
    'timestamp_granularities',
    "'timestamp_granularities' needs 'response_format' to be 'verbose_json'.",
  );
  refuse(logprobs && format !== 'json', 'include', "'logprobs' needs 'response_format' to be 'json'.");
  const isJson = stream || format === 'json' || format === 'verbose_json';
  return {
    model: findModel(fields.requiredText('model'), 'transcription'),
    isTranslation,
    facts: readAudio(form),
    language: readLanguage(fields),
    prompt: fields.text('prompt'),
    format,
    temperature: fields.number('temperature', 0, 1) ?? 0,
    granularities: granularities.length > 0 ? granularities : ['segment'],
    logprobs,
    stream,
    ...readCallOptions(fields, headers, isJson ? jsonFaults : byteFaults),
  };
}

function refuse(isWrong: boolean, name: string, message: string): void {
  if (isWrong) throw invalidParameter(name, message);
}

function readAudio({ files }: Form<AudioFacts | undefined>): AudioFacts {
  const [file] = files;
  if (file === undefined || file.field !== 'file' || files.length > 1) {
    throw new WireError(400, "'file' is required and must be one file.", {
      code: 'missing_required_parameter',
      param: 'file',
    });
  }
  if (file.facts !== undefined) return file.facts;
  throw invalidParameter(
    'file',
    "Invalid file format. Supported formats: ['flac', 'm4a', 'mp3', 'mp4', 'mpeg', 'mpga', 'oga', 'ogg', 'wav', 'webm']",
  );
}

function readLanguage(fields: RequestFields): string | undefined {
  const language = fields.text('language');
  if (language === undefined || /^[a-z]{2,3}$/.test(language)) return language;
  throw invalidParameter(
    'language',
    `Invalid language '${language.slice(0, 20)}'. Language parameter must be specified in ISO-639-1 format.`,
  );
}

/** `auto`, or the object that clients spread over several fields. Either way, the whole file gets one description. */
function checkChunking(fields: RequestFields): void {
  fields.choice('chunking_strategy', ['auto']);
  const [type, padding, silence, threshold] = vadNames as [string, string, string, string];
  fields.choice(type, ['server_vad']);
  fields.number(padding, 0, Number.MAX_SAFE_INTEGER, 'integer');
  fields.number(silence, 0, Number.MAX_SAFE_INTEGER, 'integer');
  fields.number(threshold, 0, 1);
}
