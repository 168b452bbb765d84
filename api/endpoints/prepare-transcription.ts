import {
  type TranscriptionJobRequest,
  transcriptionRequest,
  translationRequest,
} from '../../shared/capabilities/transcription.ts';
import { ApiError } from '../../shared/errors.ts';
import { invalidRequest } from './invalid-request.ts';
import type { Form, PreparedRequest, PrepareForm } from './prepared-request.ts';

/** The largest audio file, as at OpenAI. */
const largestFile = 25 * 1024 * 1024;

const lists = new Set([
  'timestamp_granularities',
  'include',
  'languages',
  'keywords',
  'known_speaker_names',
  'known_speaker_references',
]);
const speakerFields = ['known_speaker_names', 'known_speaker_references'] as const;

/** What `checkTranscription` holds against a model's row. */
export interface TranscriptionTraits extends Readonly<Record<string, unknown>> {
  readonly task: TranscriptionJobRequest['task'];
  readonly format: TranscriptionJobRequest['format'];
  /** The field that names speakers, where there is one. */
  readonly speakers: string | undefined;
}

/** Prepares `POST /v1/audio/transcriptions`. The view option `format` is the response format. */
export const prepareTranscription: PrepareForm = (form) => prepare(form, 'transcribe');

/** Prepares `POST /v1/audio/translations`. The view option `format` is the response format. */
export const prepareTranslation: PrepareForm = (form) => prepare(form, 'translate');

function prepare(form: Form, task: TranscriptionJobRequest['task']): PreparedRequest {
  const { file, name, type, bytes } = readFile(form);
  const schema = task === 'translate' ? translationRequest : transcriptionRequest;
  const input = readFields(form);
  if (!schema.validate(input)) throw invalidRequest(schema, input);
  const { model, stream, response_format: format = 'json', ...rest } = input;
  const options = rest as TranscriptionJobRequest['options'];
  const request: TranscriptionJobRequest = { task, format, file: { file, name, type, bytes }, options };
  const speakers = speakerFields.find((field) => options[field] !== undefined);
  const traits: TranscriptionTraits = { task, format, speakers };
  return {
    model,
    stream: stream === true,
    request: JSON.stringify(request),
    hasMedia: true,
    viewOptions: { format },
    traits,
    files: [file],
  };
}

/** The one file of the form. */
function readFile({ fields, files }: Form): Form['files'][number] {
  const [file, another] = files;
  const stray = files.find(({ field }) => field !== 'file');
  if (stray !== undefined) throw invalid(stray.field, `Unknown file: '${stray.field}'. Send the audio as 'file'.`);
  if (fields.has('file')) throw invalid('file', "Invalid type for 'file': expected a file, but got a text field.");
  if (file === undefined) throw invalid('file', "Missing required parameter: 'file'.");
  if (another !== undefined) throw invalid('file', "Invalid 'file': expected one file.");
  if (file.bytes === 0) throw invalid('file', "Invalid 'file': it is empty.");
  if (file.bytes > largestFile) {
    const message = `The audio file is too large: it has ${file.bytes} bytes, and at most ${largestFile} are allowed.`;
    throw new ApiError('request_too_large', message, { param: 'file' });
  }
  return file;
}

function invalid(param: string, message: string): ApiError {
  return new ApiError('invalid_request_error', message, { param: param.slice(0, 64) });
}

/** Fields by what they are to be; what does not read as that stays text, for the schema to refuse. */
function readFields({ fields }: Form): Record<string, unknown> {
  return Object.fromEntries([...fields].map(([name, values]) => [name, readField(name, values)]));
}

function readField(name: string, values: readonly string[]): unknown {
  if (lists.has(name)) return values;
  const [value, another] = values;
  // A repeated field is a list, which the schema refuses where it knows the field.
  if (another !== undefined || value === undefined) return values;
  if (name === 'temperature' && /^-?\d+(\.\d+)?(e[-+]?\d+)?$/i.test(value)) return Number(value);
  if (name === 'stream' && (value === 'true' || value === 'false')) return value === 'true';
  return value;
}
