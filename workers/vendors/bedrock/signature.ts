import { AwsV4Signer } from 'aws4fetch';

/** Returns the headers that authenticate a request as the operator's. */
export type SignRequest = (path: string, body: string) => Promise<Readonly<Record<string, string>>>;

/** How requests are authenticated as the operator's. */
export interface BedrockAccess {
  readonly sign: SignRequest;
  /** Values that no error may contain. */
  readonly secrets: readonly string[];
}

const accessKey = /^(?<id>\w{16,128}):(?<secret>[^:\s]+)(?::(?<token>[^:\s]+))?$/;
const regionInHost = /(?:^|\.)([a-z]{2}(?:-[a-z]+)+-\d)\./;

/**
 * Reads the operator's key: a Bedrock API key, which is sent as it is
 * (https://docs.aws.amazon.com/bedrock/latest/userguide/api-keys.html), or `ACCESS_KEY_ID:SECRET_ACCESS_KEY[:SESSION_TOKEN]`,
 * with which every request is signed (https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv.html) for the region in the
 * host of the base URL, or us-east-1.
 */
export function bedrockAccess(apiKey: string, baseUrl: string): BedrockAccess {
  const { id: accessKeyId, secret: secretAccessKey, token: sessionToken } = accessKey.exec(apiKey)?.groups ?? {};
  if (accessKeyId === undefined || secretAccessKey === undefined) {
    const headers = { authorization: `Bearer ${apiKey}` };
    return { sign: () => Promise.resolve(headers), secrets: [apiKey] };
  }
  const credentials = { accessKeyId, secretAccessKey, ...(sessionToken !== undefined && { sessionToken }) };
  const region = regionInHost.exec(new URL(baseUrl).hostname)?.[1] ?? 'us-east-1';
  /** The key derived for the day, which costs four hashes. */
  const cache = new Map<string, ArrayBuffer>();
  return {
    sign: async (path, body) => {
      const url = baseUrl + path;
      const signer = new AwsV4Signer({ method: 'POST', url, body, ...credentials, service: 'bedrock', region, cache });
      return Object.fromEntries((await signer.sign()).headers);
    },
    // The id, too: it reveals the operator's account.
    secrets: [accessKeyId, secretAccessKey, ...(sessionToken === undefined ? [] : [sessionToken])],
  };
}
