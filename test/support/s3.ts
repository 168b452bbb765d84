import assert from 'node:assert/strict';
import { mkdtemp, rm, stat } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PutObjectCommand, S3Client } from '@aws-sdk/client-s3';
import { eventually } from './eventually.ts';

/** As much of s3rver as is used here; it comes without types. */
interface S3Store {
  putObject(object: { bucket: string; key: string }): Promise<{ size: number; md5: string }>;
  getResourcePath(bucket: string, key: string, resource: 'object'): string;
}
interface S3Server {
  readonly store: S3Store;
  run(): Promise<{ port: number }>;
  close(): Promise<void>;
}
type S3ServerConstructor = new (options: {
  port: number;
  address: string;
  silent: boolean;
  directory: string;
  configureBuckets: { name: string }[];
}) => S3Server;

const S3rver = createRequire(import.meta.url)('s3rver') as S3ServerConstructor;

/** A store that speaks S3 over HTTP, with one bucket, for a suite of its own. It knows key ids, but checks no signature. */
export interface TestBucket {
  /** For `BLOBS_URL`, with the credentials in it. */
  url(prefix?: string): string;
  /** Makes an object. */
  place(key: string, content: string): Promise<void>;
  stop(): Promise<void>;
}

/** s3rver confirms a PUT once it has read the content, before its file has it: a GET soon after could answer nothing. */
function confirmOnceWritten(store: S3Store): void {
  const put = store.putObject.bind(store);
  store.putObject = async (object) => {
    const stored = await put(object);
    const path = store.getResourcePath(object.bucket, object.key, 'object');
    await eventually(async () => assert.equal((await stat(path)).size, stored.size));
    return stored;
  };
}

/** Starts the store on a free port, with one empty bucket. */
export async function startBucket(): Promise<TestBucket> {
  const directory = await mkdtemp(join(tmpdir(), 'sluice-test-s3-'));
  const server = new S3rver({
    ...{ port: 0, address: '127.0.0.1', silent: true, directory },
    configureBuckets: [{ name: 'sluice' }],
  });
  confirmOnceWritten(server.store);
  const { port } = await server.run();
  const client = new S3Client({
    ...{ region: 'us-east-1', endpoint: `http://127.0.0.1:${port}`, forcePathStyle: true },
    credentials: { accessKeyId: 'S3RVER', secretAccessKey: 'S3RVER' },
  });
  return {
    // The only account that s3rver has.
    url: (prefix = '') =>
      `s3://S3RVER:S3RVER@sluice/${prefix}?region=us-east-1&endpoint=http://127.0.0.1:${port}&path_style=1`,
    place: async (key, content) => {
      await client.send(new PutObjectCommand({ Bucket: 'sluice', Key: key, Body: content }));
    },
    stop: async () => {
      client.destroy();
      await server.close();
      await rm(directory, { recursive: true, force: true });
    },
  };
}
