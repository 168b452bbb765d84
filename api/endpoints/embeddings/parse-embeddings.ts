import { embeddingRequest } from '../../../shared/capabilities/embedding.ts';
import { givenMediaFields } from '../../../shared/catalogue/media-fields.ts';
import { parseJson, requestText } from '../../http/body/parse-json.ts';
import { mediaExtras } from '../../pipeline/media-extras.ts';
import type { Parse } from '../../pipeline/parsed-request.ts';
import { readRequestFields, requestTags } from '../../pipeline/request-fields.ts';
import { vendorFacts } from '../../pipeline/vendor-facts.ts';
import { withoutTags } from '../../pipeline/without-tags.ts';
import type { MediaFieldRequirements } from '../check-media-fields.ts';

/** Facts of a request to check against the model's row. */
export interface EmbeddingRequirements extends MediaFieldRequirements {
  /** The requested number of dimensions. */
  readonly dimensions: number | undefined;
}

/** Parses `POST /v1/embeddings`. */
export const parseEmbeddings: Parse<EmbeddingRequirements> = (body) => {
  const input = readRequestFields(embeddingRequest, parseJson(body));
  const { model, stream: _stream, ...request } = withoutTags(input);
  const { input: _input, ...fields } = request;
  const mediaFields = givenMediaFields('embedding', request);
  return {
    model,
    stream: false,
    request: requestText(request),
    hasMedia: false,
    viewOptions: {},
    ...requestTags(input.metadata),
    ...vendorFacts(fields, mediaExtras('embedding', mediaFields, fields)),
    requirements: { dimensions: request.dimensions, mediaFields },
  };
};
