import { createCallerDownloader } from '../../http/download.ts';
import { createHttpClient } from '../../http/http-client.ts';
import type { Offering } from '../vendor.ts';
import type { VendorOptions } from '../vendor-options.ts';
import { bedrockChat } from './chat.ts';
import { BedrockErrors } from './errors.ts';
import { bedrockAccess } from './signature.ts';

/**
 * Amazon Bedrock by its Converse API, which all its chat models share
 * (https://docs.aws.amazon.com/bedrock/latest/APIReference/API_Operations_Amazon_Bedrock_Runtime.html). The base URL contains the
 * region.
 */
export function createBedrock({ name, baseUrl, apiKey }: VendorOptions): Offering<'chat'> {
  const { sign, secrets } = bedrockAccess(apiKey, baseUrl);
  const errors = new BedrockErrors(name, secrets);
  const http = createHttpClient({
    vendor: name,
    baseUrl,
    headers: {},
    secret: apiKey,
    toStatusError: (status, body, headers) => errors.ofStatus(status, body, headers),
  });
  return {
    name,
    chat: bedrockChat(http, { sign, errors, download: createCallerDownloader() }),
    close: () => http.close(),
  };
}
