import { createHttpClient } from '../../http/http-client.ts';
import { keyCheck } from '../key-check.ts';
import type { Offering } from '../vendor.ts';
import { anthropicChat, anthropicTokenCount } from './chat.ts';
import { AnthropicErrors } from './errors.ts';

/** Anthropic, or another vendor with its Messages API, and the key. */
export interface AnthropicOptions {
  readonly name: string;
  /** Including the version: `https://api.anthropic.com/v1`. */
  readonly baseUrl: string;
  readonly apiKey: string;
}

/** The version of the API (https://docs.anthropic.com/en/api/versioning); there has been no other since. */
const version = '2023-06-01';

/** A vendor that speaks Anthropic's Messages API. */
export function createAnthropic({
  name,
  baseUrl,
  apiKey,
}: AnthropicOptions): Offering<'chat' | 'countTokens' | 'checkKey'> {
  const errors = new AnthropicErrors(name, apiKey);
  const http = createHttpClient({
    vendor: name,
    baseUrl,
    headers: { 'x-api-key': apiKey, 'anthropic-version': version },
    secret: apiKey,
    toStatusError: errors.status,
  });
  return {
    name,
    chat: anthropicChat(http, errors),
    countTokens: anthropicTokenCount(http, errors),
    checkKey: keyCheck(http, '/models?limit=1'),
    close: () => http.close(),
  };
}
