import type { z } from 'zod';
import { Upload } from '../../../shared/blobs/upload.ts';
import type { VideoJob } from '../../../shared/capabilities/video.ts';
import { videoForm, videoRemixRequest, videoRequest } from '../../../shared/capabilities/video-request.ts';
import { givenMediaFields } from '../../../shared/catalogue/media-fields.ts';
import { type FieldKind, invalidField, readFormFields } from '../../http/body/form-fields.ts';
import { parseJson } from '../../http/body/parse-json.ts';
import { mediaExtras } from '../../pipeline/media-extras.ts';
import type { Parse, ParsedRequest, ParseForm } from '../../pipeline/parsed-request.ts';
import { requestTags } from '../../pipeline/request-fields.ts';
import { textOf, withFields } from '../../pipeline/request-text.ts';
import { vendorFacts } from '../../pipeline/vendor-facts.ts';
import { withoutTags } from '../../pipeline/without-tags.ts';
import type { MediaFieldRequirements } from '../check-media-fields.ts';
import { checked } from '../images/parse-image.ts';

/** Facts of a video from its request: `checkVideo` checks them against the model's row, and the view shows them. */
export interface VideoFacts {
  readonly prompt: string;
  readonly size?: string;
  readonly seconds?: string;
  /** Whether it starts with a picture. */
  readonly hasInput: boolean;
  /** Id of the video that it remixes. */
  readonly remixedFrom?: string;
}

/** Further facts for `checkVideo`. */
export interface VideoRequirements extends VideoFacts, MediaFieldRequirements {
  /** Whether the picture is a link to the web. */
  readonly isInputLinked: boolean;
}

/** Names of a reference's fields in a form, if it is not a file. */
const referenceUrl = 'input_reference[image_url]';
const referenceFileId = 'input_reference[file_id]';

/** Types of the form's fields. */
const fields: Readonly<Record<string, FieldKind>> = {
  model: 'text',
  prompt: 'text',
  size: 'text',
  seconds: 'text',
  stream: 'boolean',
  input_reference: 'file',
  [referenceUrl]: 'text',
  [referenceFileId]: 'text',
};

/** A checked request. */
interface VideoRequest {
  readonly model?: string | null | undefined;
  readonly prompt: string;
  readonly size?: string | undefined;
  readonly seconds?: string | number | undefined;
  readonly stream?: unknown;
  readonly metadata?: unknown;
}

/** Parses the JSON of `POST /v1/videos`. */
export const parseVideo: Parse<VideoRequirements, VideoFacts> = (body) =>
  composeChecked(checked(videoRequest, parseJson(body)));

/** Parses its form: one `input_reference` (a file, or as in JSON), and the fields. */
export const parseVideoForm: ParseForm<VideoRequirements, VideoFacts> = (form) => {
  const { [referenceUrl]: url, [referenceFileId]: fileId, ...given } = readFormFields(form, fields);
  const reference = url === undefined && fileId === undefined ? [] : [{ image_url: url, file_id: fileId }];
  const [input, another] = [...form.files.map(readUpload), ...reference];
  if (another !== undefined) throw invalidField('input_reference', 'it is given more than once');
  if (input === undefined || input instanceof Upload) {
    const { input_reference: upload, ...request } = checked(videoForm, {
      ...given,
      ...(input && { input_reference: input }),
    });
    return compose(request, null, upload);
  }
  return composeChecked(checked(videoRequest, { ...given, input_reference: input }));
};

function readUpload(upload: Upload): Upload {
  const { field } = upload;
  if (field !== 'input_reference') throw invalidField(field, 'a file is not expected here');
  if (upload.bytes === 0) throw invalidField(field, 'the file is empty');
  return upload;
}

/** Parses `POST /v1/videos/{id}/remix`. Model, size and length are those of the video, which `resolve` looks up. */
export const parseVideoRemix: Parse<VideoRequirements, VideoFacts> = (body) =>
  compose(checked(videoRemixRequest, parseJson(body)), null);

/** Parses its form, which is only a prompt, too. */
export const parseVideoRemixForm: ParseForm<VideoRequirements, VideoFacts> = (form) => {
  const [file] = form.files;
  if (file !== undefined) throw invalidField(file.field, 'a file is not expected here');
  return compose(checked(videoRemixRequest, readFormFields(form, { prompt: 'text' })), null);
};

function composeChecked({
  input_reference: input,
  ...request
}: z.infer<typeof videoRequest>): ParsedRequest<VideoRequirements, VideoFacts> {
  return compose(request, input?.image_url === undefined ? null : { image_url: input.image_url });
}

function compose(
  request: VideoRequest,
  input: VideoJob['input'],
  upload?: Upload,
): ParsedRequest<VideoRequirements, VideoFacts> {
  const { model, prompt, size, seconds, stream: _, ...parameters } = withoutTags(request);
  const shape = { ...(size !== undefined && { size }), ...(seconds !== undefined && { seconds: String(seconds) }) };
  const job: VideoJob = { prompt, ...shape, input, remixed: null, parameters };
  const facts: VideoFacts = { prompt, ...shape, hasInput: input !== null || upload !== undefined };
  const isInputLinked = input !== null && /^https?:/i.test(input.image_url);
  const mediaFields = givenMediaFields('video', { ...job });
  return {
    model: model ?? '',
    stream: false,
    request: JSON.stringify(job),
    hasMedia: facts.hasInput,
    viewOptions: facts,
    ...videoExtent(facts),
    ...requestTags(request.metadata),
    ...vendorFacts(parameters, mediaExtras('video', mediaFields, parameters)),
    requirements: { ...facts, isInputLinked, mediaFields },
    files: upload === undefined ? [] : [upload],
    store: true,
    background: true,
  };
}

/** Its length; the model's default if missing. */
function videoExtent({ seconds }: { readonly seconds?: unknown }): Pick<ParsedRequest, 'extent'> {
  return seconds === undefined ? {} : { extent: { seconds: Number(seconds) } };
}

/** Adds the model's defaults to a parsed request. The prompt is bounded, but a picture in the JSON is not: it is not parsed again. */
export function withDefaults(
  parsed: ParsedRequest<VideoRequirements, VideoFacts>,
  defaults: Pick<VideoFacts, 'size' | 'seconds'>,
): ParsedRequest<VideoRequirements, VideoFacts> {
  const { request } = parsed;
  if (typeof request === 'string') return withFacts(parsed, defaults, defaults);
  const whole = { ...parsed.viewOptions, ...defaults };
  return { ...parsed, request: withFields(request, defaults), viewOptions: whole, ...videoExtent(whole) };
}

/** Adds facts to a parsed request: the model's defaults, or those of the remixed video. */
export function withFacts(
  parsed: ParsedRequest<VideoRequirements, VideoFacts>,
  facts: Partial<VideoFacts>,
  job: Partial<VideoJob>,
  model = parsed.model,
): ParsedRequest<VideoRequirements, VideoFacts> {
  const whole = { ...parsed.viewOptions, ...facts };
  return {
    ...parsed,
    model,
    request: JSON.stringify({ ...(JSON.parse(textOf(parsed.request)) as VideoJob), ...job }),
    viewOptions: whole,
    ...videoExtent(whole),
    requirements: { ...parsed.requirements, ...facts },
  };
}
