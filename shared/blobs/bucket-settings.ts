/** A bucket of an S3-compatible store, and how to reach it. */
export interface BucketSettings {
  readonly bucket: string;
  /** What the keys of all blobs begin with, without a slash at its ends; may be empty. */
  readonly prefix: string;
  readonly region: string;
  /** Base URL of the store; undefined: Amazon's own. */
  readonly endpoint: string | undefined;
  /** The bucket's name stands in the path, not in the host's name. */
  readonly pathStyle: boolean;
  /** Undefined: what the AWS SDK finds by itself (a role of the machine or the pod, a profile). */
  readonly credentials: BucketCredentials | undefined;
}

/** A key of the store. */
interface BucketCredentials {
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  readonly sessionToken?: string;
}

/** Settings from the environment that complete the URL; the names are the AWS SDKs'. */
export interface BucketEnvironment {
  readonly AWS_ACCESS_KEY_ID?: string | undefined;
  readonly AWS_SECRET_ACCESS_KEY?: string | undefined;
  readonly AWS_SESSION_TOKEN?: string | undefined;
  readonly AWS_REGION?: string | undefined;
}

/**
 * Reads `s3://bucket/prefix?region=…&endpoint=…&path_style=1`. Credentials come from the environment, else from the URL's
 * user info.
 * @throws Error whose message says what the URL takes; it never shows the URL, which may hold a secret.
 */
export function readBucketSettings(text: string, environment: BucketEnvironment): BucketSettings {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url?.protocol !== 's3:' || url.hostname === '' || url.port !== '' || url.hash !== '') {
    throw new Error('expected s3://bucket/prefix?region=…&endpoint=…&path_style=1');
  }
  const unknown = [...url.searchParams.keys()].find((name) => !['region', 'endpoint', 'path_style'].includes(name));
  if (unknown !== undefined) throw new Error('it takes only region, endpoint and path_style after the question mark');
  const endpoint = url.searchParams.get('endpoint') ?? undefined;
  if (endpoint !== undefined && !/^https?:\/\/[^/]/.test(endpoint)) {
    throw new Error('its endpoint must be an http or https URL');
  }
  const pathStyle = url.searchParams.get('path_style') ?? '0';
  if (pathStyle !== '0' && pathStyle !== '1') throw new Error('its path_style must be 1 or 0');
  return {
    bucket: url.hostname,
    prefix: decodeURIComponent(url.pathname).replace(/^\/+|\/+$/g, ''),
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
  return { accessKeyId: decodeURIComponent(url.username), secretAccessKey: decodeURIComponent(url.password) };
}
