import { type Check, defineEndpoint } from '../../pipeline/endpoint.ts';
import { checkChatFields, checkModelLimits } from '../../pipeline/request-extent.ts';
import { invalidParameter } from '../../pipeline/request-fields.ts';
import { eventStream } from '../../reference/operation.ts';
import { completionView } from './completion-view.ts';
import { foldCompletion } from './fold-completion.ts';
import { type CompletionRequirements, parseCompletion } from './parse-completion.ts';

/** Limits of models without native completions that need more than the parameter's name. */
const reasons: Readonly<Record<string, string>> = {
  prompt: "'prompt' must be a string or an array of strings",
  best_of: "'best_of' cannot be greater than 'n'",
  logprobs: "'logprobs' cannot be combined with 'echo'",
  max_tokens: "'max_tokens' must be at least 1",
};

const checkCompletion: Check<CompletionRequirements> = ({ requirements }, model, unsupported) => {
  const { id, legacyCompletions } = model;
  const { nativeOnly: name, limits } = requirements;
  checkModelLimits(limits, model);
  if (legacyCompletions) return undefined;
  if (name === undefined) return checkChatFields(requirements, model, unsupported);
  const reason = reasons[name] ?? `'${name}' is not supported`;
  throw invalidParameter(
    name,
    `The model \`${id}\` has no native completions (a chat stands in for them), so ${reason}.`,
  );
};

/** `POST /v1/completions`, the legacy one (https://platform.openai.com/docs/api-reference/completions). */
export const completions = defineEndpoint({
  name: 'completions',
  path: '/v1/completions',
  capability: 'chat',
  operation: {
    id: 'createCompletion',
    tag: 'Chat',
    summary: 'Create a completion (legacy)',
    json: 'CompletionRequest',
    answer: { json: 'Completion', types: [eventStream] },
    example: { model: 'completion', json: { prompt: 'Once upon a time', max_tokens: 20 } },
  },
  parse: parseCompletion,
  check: checkCompletion,
  view: completionView({
    idPrefix: 'cmpl-',
    object: 'text_completion',
    chunkObject: 'text_completion',
    fold: foldCompletion,
  }),
});
