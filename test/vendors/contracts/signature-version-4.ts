import assert from 'node:assert/strict';
import { createHash, createHmac } from 'node:crypto';
import type { ReceivedRequest } from './fixture-vendor.ts';

/** What a request was signed with. */
interface Signed {
  readonly accessKeyId: string;
  readonly region: string;
  readonly service: string;
  readonly headers: readonly string[];
}

const hash = (text: string): string => createHash('sha256').update(text).digest('hex');
const hmac = (key: string | Buffer, text: string): Buffer => createHmac('sha256', key).update(text).digest();

/**
 * Checks the signature of a request without a query as a service does that encodes paths twice
 * (https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-create-signed-request.html).
 */
export function checkSignature({ method, url, headers, body }: ReceivedRequest, secretAccessKey: string): Signed {
  const form =
    /^AWS4-HMAC-SHA256 Credential=(\w+)\/(\d{8})\/([\w-]+)\/([\w-]+)\/aws4_request, SignedHeaders=([\w;-]+), Signature=(\w{64})$/;
  const [, accessKeyId = '', day = '', region = '', service = '', names = '', signature = ''] =
    form.exec(headers.authorization ?? '') ?? assert.fail('no signature');
  const path = (url ?? '').split('/').map(encodeURIComponent).join('/');
  const canonicalHeaders = names.split(';').map((name) => `${name}:${String(headers[name]).trim()}\n`);
  const canonical = [method, path, '', canonicalHeaders.join(''), names, hash(body)].join('\n');
  const date = String(headers['x-amz-date']);
  assert.ok(date.startsWith(day));
  const scope = [day, region, service, 'aws4_request'];
  const key = scope.reduce<string | Buffer>((derived, part) => hmac(derived, part), `AWS4${secretAccessKey}`);
  const expected = hmac(key, ['AWS4-HMAC-SHA256', date, scope.join('/'), hash(canonical)].join('\n'));
  assert.equal(signature, expected.toString('hex'));
  return { accessKeyId, region, service, headers: names.split(';') };
}
