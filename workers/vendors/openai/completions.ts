import type { HttpClient } from '../../http/http-client.ts';
import type { VendorMethod } from '../vendor.ts';
import type { OpenAiAnswerReader } from './answer-reader.ts';
import { completionMethod } from './completion-method.ts';
import { completionShape } from './completion-shape.ts';

/**
 * Legacy completions (https://platform.openai.com/docs/api-reference/completions). Their chunks have the shape of their whole
 * answers, with the text in `text`, and are too rare to be worth a template.
 */
export function openAiCompletions(http: HttpClient, answerReader: OpenAiAnswerReader): VendorMethod {
  return completionMethod(http, answerReader, {
    path: '/completions',
    toChunkChoice: (choice) => (typeof choice.text === 'string' ? choice : undefined),
    hasToken: () => false,
    shapeFor: () => completionShape,
  });
}
