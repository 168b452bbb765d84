import { type SpeechFormat, type SpeechJobRequest, speechRequest } from '../../../shared/capabilities/speech.ts';
import { givenMediaFields } from '../../../shared/catalogue/media-fields.ts';
import { parseJson } from '../../http/body/parse-json.ts';
import { mediaExtras } from '../../pipeline/media-extras.ts';
import type { Parse, ParsedRequest } from '../../pipeline/parsed-request.ts';
import { readRequestFields, requestTags } from '../../pipeline/request-fields.ts';
import { textOf } from '../../pipeline/request-text.ts';
import { vendorFacts } from '../../pipeline/vendor-facts.ts';
import { withoutTags } from '../../pipeline/without-tags.ts';
import type { MediaFieldRequirements } from '../check-media-fields.ts';

/** View options of speech. */
export interface SpeechViewOptions {
  readonly format: SpeechFormat;
  /** Whether the caller specified it. */
  readonly isFormatGiven: boolean;
  /** Whether the caller wants the audio as events. */
  readonly events: boolean;
}

/** Facts of a speech request to check against the model's row. */
export interface SpeechRequirements extends SpeechViewOptions, MediaFieldRequirements {}

/** Parses `POST /v1/audio/speech`. Audio is always streamed. */
export const parseSpeech: Parse<SpeechRequirements, SpeechViewOptions> = (body) => {
  const input = readRequestFields(speechRequest, parseJson(body));
  const { model, stream_format: streamFormat, response_format: format = 'mp3', ...rest } = withoutTags(input);
  const events = streamFormat === 'sse';
  const request: SpeechJobRequest = { ...rest, response_format: format, ...(events && { stream_format: 'sse' }) };
  const viewOptions: SpeechViewOptions = { format, isFormatGiven: input.response_format !== undefined, events };
  const mediaFields = givenMediaFields('speech', request);
  return {
    ...{ model, stream: true, request: JSON.stringify(request), hasMedia: false, viewOptions },
    ...requestTags(input.metadata),
    ...vendorFacts(request, mediaExtras('speech', mediaFields, request)),
    extent: { characters: [...input.input].length },
    requirements: { ...viewOptions, mediaFields },
  };
};

/** Changes the format of a parsed request. */
export function withFormat(
  parsed: ParsedRequest<SpeechRequirements, SpeechViewOptions>,
  format: SpeechFormat,
): ParsedRequest<SpeechRequirements, SpeechViewOptions> {
  const request: SpeechJobRequest = {
    ...(JSON.parse(textOf(parsed.request)) as SpeechJobRequest),
    response_format: format,
  };
  return {
    ...parsed,
    request: JSON.stringify(request),
    viewOptions: { ...parsed.viewOptions, format },
    requirements: { ...parsed.requirements, format },
  };
}
