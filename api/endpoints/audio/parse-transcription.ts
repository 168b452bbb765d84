import {
  type TranscriptionJobRequest,
  transcriptionRequest,
  translationRequest,
} from '../../../shared/capabilities/transcription.ts';
import { givenMediaFields } from '../../../shared/catalogue/media-fields.ts';
import { ApiError } from '../../../shared/errors.ts';
import { type FieldKind, invalidField, readFormFields } from '../../http/body/form-fields.ts';
import { mediaExtras } from '../../pipeline/media-extras.ts';
import type { Form, ParsedRequest, ParseForm } from '../../pipeline/parsed-request.ts';
import { invalidParameter, readRequestFields } from '../../pipeline/request-fields.ts';
import { vendorFacts } from '../../pipeline/vendor-facts.ts';
import type { MediaFieldRequirements } from '../check-media-fields.ts';

/** Maximum size of an audio file, as at OpenAI. */
const largestFile = 25 * 1024 * 1024;

/** Types of the fields of audio forms. */
const fields: Readonly<Record<string, FieldKind>> = {
  file: 'file',
  model: 'text',
  prompt: 'text',
  language: 'text',
  languages: 'list',
  keywords: 'list',
  response_format: 'text',
  temperature: 'number',
  timestamp_granularities: 'list',
  include: 'list',
  stream: 'boolean',
  chunking_strategy: 'text',
  known_speaker_names: 'list',
  known_speaker_references: 'list',
};
const speakerFields = ['known_speaker_names', 'known_speaker_references'] as const;

/** View options of a transcription. */
export interface TranscriptionViewOptions {
  readonly format: TranscriptionJobRequest['format'];
}

/** Facts of a request that `checkTranscription` checks against the model's row. */
export interface TranscriptionRequirements extends TranscriptionViewOptions, MediaFieldRequirements {
  readonly task: TranscriptionJobRequest['task'];
  /** The field with speakers, if there is one. */
  readonly speakers: string | undefined;
}

/** A lower bound for speech: 16 kbit/s. Only the vendor learns the real duration. */
const minBytesPerSecond = 2000;

/** Parses `POST /v1/audio/transcriptions`. */
export const parseTranscription: ParseForm<TranscriptionRequirements, TranscriptionViewOptions> = (form) =>
  parse(form, 'transcribe');

/** Parses `POST /v1/audio/translations`. */
export const parseTranslation: ParseForm<TranscriptionRequirements, TranscriptionViewOptions> = (form) =>
  parse(form, 'translate');

function parse(
  form: Form,
  task: TranscriptionJobRequest['task'],
): ParsedRequest<TranscriptionRequirements, TranscriptionViewOptions> {
  const schema = task === 'translate' ? translationRequest : transcriptionRequest;
  const given = readFormFields(form, fields);
  const upload = readFile(form);
  const input = readRequestFields<typeof transcriptionRequest | typeof translationRequest>(schema, given);
  const { model, stream, response_format: format = 'json', ...rest } = input;
  const options = rest as TranscriptionJobRequest['options'];
  const request: TranscriptionJobRequest = { task, format, options };
  const samples = dataCharacters(options.known_speaker_references);
  const speakers = speakerFields.find((field) => options[field] !== undefined);
  const mediaFields = givenMediaFields('transcription', { ...request });
  return {
    model,
    stream: stream === true,
    request: JSON.stringify(request),
    hasMedia: true,
    viewOptions: { format },
    ...vendorFacts(options, mediaExtras('transcription', mediaFields, options)),
    extent: {
      seconds: Math.ceil((upload.bytes + samples) / minBytesPerSecond),
      ...(samples > 0 && { mediaBytes: samples }),
    },
    requirements: { task, format, speakers, mediaFields },
    files: [upload],
  };
}

/** Characters of the samples of speakers that are audio: each is at most a byte of it, and none is text. */
function dataCharacters(samples: unknown): number {
  const sounds = (Array.isArray(samples) ? samples : []).filter((sample) => audioData.test(String(sample)));
  return sounds.reduce((sum: number, sample: string) => sum + sample.length, 0);
}

const audioData = /^data:(?:audio|video)\/[\w.+-]{1,64}(?:;[\w-]+=[^;,]{0,64})*;base64,/i;

/** The one file of the form. */
function readFile({ files }: Form): Form['files'][number] {
  const [file, another] = files;
  const stray = files.find(({ field }) => field !== 'file');
  if (stray !== undefined) throw invalidField(stray.field, "a file is not expected here: send the audio as 'file'");
  if (file === undefined) throw invalidParameter('file', "Missing required parameter: 'file'.");
  if (another !== undefined) throw invalidField('file', 'it is given more than once');
  if (file.bytes === 0) throw invalidField('file', 'the file is empty');
  if (file.bytes > largestFile) {
    const message = `The audio file is too large: it has ${file.bytes} bytes, and at most ${largestFile} are allowed.`;
    throw new ApiError('request_too_large', message, { param: 'file' });
  }
  return file;
}
