import type { Frame } from '../../../shared/jobs/append.ts';
import { type Check, defineEndpoint } from '../../pipeline/endpoint.ts';
import { invalidParameter } from '../../pipeline/request-fields.ts';
import type { ViewedJob } from '../../replies/view.ts';
import { withFieldCheck } from '../check-media-fields.ts';
import { type EmbeddingRequirements, parseEmbeddings } from './parse-embeddings.ts';

/** Prepends the envelope to the end frame's `data` and `usage`, which may have many megabytes and are not parsed. */
function embeddingList(job: ViewedJob, end: Frame): string {
  return envelope(job) + end.text.slice(1);
}

function envelope({ model }: ViewedJob): string {
  return `{"object":"list","model":${JSON.stringify(model)},`;
}

const checkEmbeddings: Check<EmbeddingRequirements> = ({ requirements }, { id, embedding }) => {
  if (requirements.dimensions === undefined || embedding?.dimensions) return undefined;
  throw invalidParameter('dimensions', `The model \`${id}\` does not support specifying dimensions.`);
};

/** `POST /v1/embeddings` (https://platform.openai.com/docs/api-reference/embeddings). */
export const embeddings = defineEndpoint({
  name: 'embeddings',
  path: '/v1/embeddings',
  capability: 'embedding',
  operation: {
    id: 'createEmbedding',
    tag: 'Chat',
    summary: 'Create embeddings',
    description: '`input` is a text, one text as tokens, or up to 2,048 texts, all as tokens or none.',
    json: 'EmbeddingRequest',
    answer: { json: 'EmbeddingList' },
    example: { model: 'embedding', json: { input: ['Hello!', 'Good morning!'] } },
  },
  parse: parseEmbeddings,
  check: withFieldCheck('embedding', checkEmbeddings),
  view: {
    stream: (job) => (frame) => (frame.type === 'end' ? [`data: ${embeddingList(job, frame)}`, 'data: [DONE]'] : []),
    held: (job, frames) => embeddingList(job, frames.at(-1) as Frame),
    heldStart: (job) => ({ text: envelope(job), replaces: 1 }),
  },
});
