import type { IncomingHttpHeaders } from 'node:http';
import { findModel, type SandboxModel } from '../models.ts';
import { type PromptText, readPromptTexts } from '../prompt-texts.ts';
import { readStop } from '../read-stop.ts';
import { type CallOptions, RequestFields, readCallOptions } from '../request-fields.ts';
import { jsonFaults } from '../request-options.ts';
import { invalidParameter } from '../wire-error.ts';

/** A validated `POST /v1/completions` with its defaults filled in. */
export interface CompletionRequest extends CallOptions {
  model: SandboxModel;
  prompts: readonly PromptText[];
  suffix: string;
  echo: boolean;
  choices: number;
  /** Number of completions generated per prompt, the best `choices` of which are returned. */
  bestOf: number;
  /** Number of alternatives returned with each token's log probability; undefined: none requested. */
  logprobs: number | undefined;
  maximumTokens: number;
  stop: readonly string[];
  seed: number;
  stream: boolean;
  includeUsage: boolean;
}

const fieldNames = [
  ...['prompt', 'suffix', 'echo', 'n', 'best_of', 'logprobs', 'max_tokens', 'stop', 'seed', 'stream', 'stream_options'],
  ...['temperature', 'top_p', 'presence_penalty', 'frequency_penalty', 'logit_bias'],
];

/** The prompt of a request without one: the separator between two documents. */
const noPrompt: PromptText = { text: '', tokens: 1 };

/**
 * Validates the body as OpenAI does; fields without effect here are validated for type and range only.
 * @throws WireError 400 naming the parameter, 404 for a model that is not served.
 */
export function readCompletionRequest(text: string, headers: IncomingHttpHeaders): CompletionRequest {
  const fields = RequestFields.fromJson(text);
  const model = findModel(fields.requiredText('model'), 'completion');
  fields.allowOnly(fieldNames);
  checkSampling(fields);
  const stream = fields.flag('stream') ?? false;
  const choices = fields.number('n', 1, 128, 'integer') ?? 1;
  const prompt = fields.raw('prompt');
  return {
    model,
    prompts: prompt === undefined ? [noPrompt] : readPromptTexts(prompt, 'prompt'),
    suffix: fields.text('suffix') ?? '',
    echo: fields.flag('echo') ?? false,
    choices,
    bestOf: readBestOf(fields, choices, stream),
    logprobs: fields.number('logprobs', 0, 5, 'integer'),
    maximumTokens: fields.number('max_tokens', 0, Number.MAX_SAFE_INTEGER, 'integer') ?? 16,
    stop: readStop(fields.raw('stop')),
    seed: fields.number('seed', -(2 ** 63), 2 ** 63, 'integer') ?? 0,
    stream,
    includeUsage: readIncludeUsage(fields, stream),
    ...readCallOptions(fields, headers, [...jsonFaults, 'no_done', 'no_usage']),
  };
}

function checkSampling(fields: RequestFields): void {
  fields.number('temperature', 0, 2);
  fields.number('top_p', 0, 1);
  fields.number('frequency_penalty', -2, 2);
  fields.number('presence_penalty', -2, 2);
  fields.object('logit_bias');
}

function readBestOf(fields: RequestFields, choices: number, stream: boolean): number {
  const bestOf = fields.number('best_of', 0, 20, 'integer') ?? choices;
  if (bestOf < choices) throw invalidParameter('best_of', "'best_of' must not be less than 'n'.");
  if (bestOf > choices && stream) throw invalidParameter('best_of', 'The best of several cannot be streamed.');
  return bestOf;
}

function readIncludeUsage(fields: RequestFields, stream: boolean): boolean {
  const options = fields.object('stream_options');
  if (options === undefined) return false;
  if (!stream) {
    throw invalidParameter('stream_options', "'stream_options' is only allowed when 'stream' is enabled.");
  }
  return options.include_usage === true;
}
