import type { SpeechFormat, SpeechJobRequest } from '../../../shared/capabilities/speech.ts';
import { speechRequest } from '../../../shared/capabilities/speech.ts';
import { givenMediaFields } from '../../../shared/catalogue/media-fields.ts';
import { parseJson } from '../../http/body/parse-json.ts';
import { mediaExtras, vendorFacts } from '../../pipeline/billed-extras.ts';
import type { Parse, ParsedRequest } from '../../pipeline/parsed-request.ts';
import { readRequestFields } from '../../pipeline/request-fields.ts';
import { requestTags } from '../../pipeline/request-tags.ts';

/** What `checkSpeech` holds against a model's row, and what the view shows by. */
export interface SpeechTraits extends Readonly<Record<string, unknown>> {
  readonly format: SpeechFormat;
  /** Whether the caller has named it. */
  readonly isFormatGiven: boolean;
  /** Whether the caller wants the audio as events. */
  readonly events: boolean;
}

/**
 * Prepares `POST /v1/audio/speech`. Audio always comes as it grows; its traits are the view's options too.
 */
export const parseSpeech: Parse = (body) => {
  const input = readRequestFields(speechRequest, parseJson(body));
  const { model, stream_format: streamFormat, response_format: format = 'mp3', ...rest } = input;
  const events = streamFormat === 'sse';
  const request: SpeechJobRequest = { ...rest, response_format: format, ...(events && { stream_format: 'sse' }) };
  const traits: SpeechTraits = { format, isFormatGiven: input.response_format !== undefined, events };
  const mediaFields = givenMediaFields('speech', request);
  return {
    ...{ model, stream: true, request: JSON.stringify(request), hasMedia: false, viewOptions: traits },
    ...requestTags(input.metadata),
    ...vendorFacts(request, mediaExtras('speech', mediaFields, request)),
    extent: { characters: [...input.input].length },
    traits: { ...traits, mediaFields },
  };
};

/** A parsed request for another format. */
export function withFormat(parsed: ParsedRequest, format: SpeechFormat): ParsedRequest {
  const request: SpeechJobRequest = { ...(JSON.parse(parsed.request) as SpeechJobRequest), response_format: format };
  return {
    ...parsed,
    request: JSON.stringify(request),
    viewOptions: { ...parsed.viewOptions, format },
    traits: { ...parsed.traits, format },
  };
}
