import { embeddingRequest } from '../../../shared/capabilities/embedding.ts';
import { givenMediaFields } from '../../../shared/catalogue/media-fields.ts';
import { parseJson } from '../../http/body/parse-json.ts';
import { mediaExtras, vendorFacts } from '../../pipeline/billed-extras.ts';
import type { Parse } from '../../pipeline/parsed-request.ts';
import { readRequestFields } from '../../pipeline/request-fields.ts';
import { requestTags } from '../../pipeline/request-tags.ts';

/** Prepares `POST /v1/embeddings`. The trait `dimensions` is the number of them that was asked for. */
export const parseEmbeddings: Parse = (body) => {
  const input = readRequestFields(embeddingRequest, parseJson(body));
  const { model, stream: _stream, ...request } = input;
  const { input: _input, ...fields } = request;
  const mediaFields = givenMediaFields('embedding', request);
  return {
    model,
    stream: false,
    request: JSON.stringify(request),
    hasMedia: false,
    viewOptions: {},
    ...requestTags(request.metadata),
    ...vendorFacts(fields, mediaExtras('embedding', mediaFields, fields)),
    traits: { dimensions: request.dimensions, mediaFields },
  };
};
