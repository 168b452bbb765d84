import { z } from 'zod';

/** Files that Secrets are made of often end with a line feed. */
const credential = z
  .string()
  .trim()
  .regex(/^[\x21-\x7e]*$/, 'must be printable characters of ASCII, without spaces');

/** Settings of a bucket, named as in the AWS SDKs but for its URL. */
export const bucketSettings = {
  BLOBS_URL: z.string().optional(),
  AWS_ACCESS_KEY_ID: credential.optional(),
  AWS_SECRET_ACCESS_KEY: credential.optional(),
  AWS_SESSION_TOKEN: credential.optional(),
  AWS_REGION: z.string().trim().optional(),
};

/** A bucket of an S3-compatible store and its connection settings. */
export interface BucketSettings {
  readonly bucket: string;
  /** Prefix of the keys of all blobs, without leading or trailing slash; may be empty. */
  readonly prefix: string;
  readonly region: string;
  /** Base URL of the store; undefined: Amazon's own. */
  readonly endpoint: string | undefined;
  /** The bucket's name goes in the path, not in the host name. */
  readonly pathStyle: boolean;
  /** Undefined: credentials found by the AWS SDK (a role of the machine or the pod, a profile). */
  readonly credentials: BucketCredentials | undefined;
}

/** A key of the store. */
interface BucketCredentials {
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  readonly sessionToken?: string;
}

/** Environment variables that complete the URL, named as in the AWS SDKs. */
export interface BucketEnvironment {
  readonly AWS_ACCESS_KEY_ID?: string | undefined;
  readonly AWS_SECRET_ACCESS_KEY?: string | undefined;
  readonly AWS_SESSION_TOKEN?: string | undefined;
  readonly AWS_REGION?: string | undefined;
}

/**
 * Parses `s3://bucket/prefix?region=…&endpoint=…&path_style=1`. Credentials come from the environment, else from the URL's user
 * info.
 * @throws Error whose message explains the URL's syntax; it never contains the URL, which may hold a secret.
 */
export function readBucketSettings(text: string, environment: BucketEnvironment): BucketSettings {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url?.protocol !== 's3:' || url.hostname === '' || url.port !== '' || url.hash !== '') {
    throw new Error('expected s3://bucket/prefix?region=…&endpoint=…&path_style=1');
  }
  const unknown = [...url.searchParams.keys()].find((name) => !['region', 'endpoint', 'path_style'].includes(name));
  if (unknown !== undefined) throw new Error('it takes only region, endpoint and path_style after the question mark');
  const endpoint = url.searchParams.get('endpoint') ?? undefined;
  if (endpoint !== undefined && !(/^https?:\/\/[^/]/.test(endpoint) && URL.canParse(endpoint))) {
    throw new Error('its endpoint must be an http or https URL');
  }
  const pathStyle = url.searchParams.get('path_style') ?? '0';
  if (pathStyle !== '0' && pathStyle !== '1') throw new Error('its path_style must be 1 or 0');
  return {
    bucket: url.hostname,
    prefix: decoded(url.pathname).replace(/^\/+|\/+$/g, ''),
    region: url.searchParams.get('region') ?? environment.AWS_REGION ?? 'us-east-1',
    endpoint: endpoint?.replace(/\/+$/, ''),
    pathStyle: pathStyle === '1',
    credentials: readCredentials(url, environment),
  };
}

function readCredentials(url: URL, environment: BucketEnvironment): BucketCredentials | undefined {
  const { AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN } = environment;
  if ((AWS_ACCESS_KEY_ID === undefined) !== (AWS_SECRET_ACCESS_KEY === undefined)) {
    throw new Error('AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY must be set together');
  }
  if (AWS_ACCESS_KEY_ID !== undefined && AWS_SECRET_ACCESS_KEY !== undefined) {
    const sessionToken = AWS_SESSION_TOKEN === undefined ? {} : { sessionToken: AWS_SESSION_TOKEN };
    return { accessKeyId: AWS_ACCESS_KEY_ID, secretAccessKey: AWS_SECRET_ACCESS_KEY, ...sessionToken };
  }
  if (url.username === '' && url.password === '') return undefined;
  if (url.username === '' || url.password === '') throw new Error('its user info must be a key id and a secret');
  return { accessKeyId: decoded(url.username), secretAccessKey: decoded(url.password) };
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    throw new Error('it has a % that is followed by no two hexadecimal digits: write it as %25');
  }
}
