import type { IncomingHttpHeaders } from 'node:http';
import { ApiError } from '../../shared/errors.ts';

/** Returns the API key of a request. @throws ApiError 401. */
export function readKey(headers: IncomingHttpHeaders): string {
  const { authorization } = headers;
  const apiKey = headers['x-api-key'] || headers['api-key'];
  if (authorization === undefined && typeof apiKey === 'string' && apiKey !== '') return apiKey.trim();
  const protocolKey = readProtocolKey(headers['sec-websocket-protocol']);
  if (authorization === undefined && protocolKey !== undefined) return protocolKey;
  if (authorization === undefined || authorization === '') {
    throw new ApiError(
      'invalid_api_key',
      "You didn't provide an API key. Send it as a header: Authorization: Bearer YOUR_KEY.",
    );
  }
  const key = /^Bearer +(\S+) *$/i.exec(authorization)?.[1];
  if (key === undefined) {
    throw new ApiError('invalid_api_key', 'The Authorization header is malformed: it must be "Bearer YOUR_KEY".');
  }
  return key;
}

const keyProtocol = 'openai-insecure-api-key.';

/** Returns the key among a WebSocket's offered subprotocols. Both the prefix and its warning are OpenAI's. */
function readProtocolKey(offered: string | undefined): string | undefined {
  const protocols = offered?.split(',').map((name) => name.trim());
  return protocols?.find((name) => name.startsWith(keyProtocol))?.slice(keyProtocol.length);
}
