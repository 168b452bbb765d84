import { randomUUID } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { mkdir, readdir, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import {
  DeleteObjectsCommand,
  GetObjectCommand,
  HeadObjectCommand,
  S3Client,
  S3ServiceException,
} from '@aws-sdk/client-s3';
import { Disk } from 'flydrive';
import { S3Driver } from 'flydrive/drivers/s3';
import { ConfigError } from '../config/config.ts';
import { unusableFile } from '../config/start-failure.ts';
import { type BlobStorage, BlobStorageError, type ByteRange, MissingBlobError } from './blob-storage.ts';
import type { BucketSettings } from './bucket-settings.ts';
import { writeNewFile } from './write-new-file.ts';

const connectMs = 5000;
/** From the start of a request, including its upload, to the response headers; and from these to the end of what is read at once. */
const requestMs = 120_000;
/** Timeout for a download whose reader reads nothing. */
const silenceMs = 300_000;
/** Maximum number of concurrent downloads; a slow reader holds its connection. */
const connections = 1000;

/** Objects that one request deletes (https://docs.aws.amazon.com/AmazonS3/latest/API/API_DeleteObjects.html). */
const maxDeleted = 1000;

/** Age at which a spool file counts as left behind by a killed process. */
const abandonedMs = 3_600_000;
/** Names of spool files. The folder also has job records that wait for the database, as long as that takes: see `Spool`. */
const spoolFile = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/** The SDK also prints to the console what it throws. */
const nothing = (): void => undefined;
const silent = { trace: nothing, debug: nothing, info: nothing, warn: nothing, error: nothing };

/** Blobs as objects of a bucket. Streams are spooled to a file first: an upload needs its length, and must not be in memory. */
export class BucketStorage implements BlobStorage {
  readonly identity: string;
  readonly location: string;
  readonly #settings: BucketSettings;
  readonly #client: S3Client;
  readonly #disk: Disk;
  readonly #spoolFolder: string;

  private constructor(settings: BucketSettings, spoolFolder: string) {
    const { bucket, prefix, region, endpoint, pathStyle, credentials } = settings;
    this.#settings = settings;
    this.#spoolFolder = spoolFolder;
    this.location = `s3://${bucket}/${prefix}${endpoint === undefined ? '' : ` at ${new URL(endpoint).host}`}`;
    this.identity = `bucket ${this.location}`;
    this.#client = new S3Client({
      region,
      forcePathStyle: pathStyle,
      ...(endpoint === undefined ? {} : { endpoint }),
      ...(credentials === undefined ? {} : { credentials }),
      logger: silent,
      // Checksums in trailers, the SDK's default, are refused by many S3-compatible stores.
      requestChecksumCalculation: 'WHEN_REQUIRED',
      responseChecksumValidation: 'WHEN_REQUIRED',
      requestHandler: {
        connectionTimeout: connectMs,
        requestTimeout: requestMs,
        throwOnRequestTimeout: true,
        socketTimeout: silenceMs,
        httpAgent: { maxSockets: connections },
        httpsAgent: { maxSockets: connections },
      },
    });
    const driver = new S3Driver({ client: this.#client, bucket, visibility: 'private', supportsACL: false });
    this.#disk = new Disk(driver);
  }

  /**
   * Opens the bucket.
   * @param dataDir folder for the spool files
   * @throws ConfigError when the bucket cannot be listed, or the folder cannot be written.
   */
  static async open(settings: BucketSettings, dataDir: string): Promise<BucketStorage> {
    const spoolFolder = join(dataDir, 'spool');
    try {
      await mkdir(spoolFolder, { recursive: true });
    } catch (error) {
      throw unusableFile(`The data folder ${dataDir}`, error);
    }
    const storage = new BucketStorage(settings, spoolFolder);
    try {
      await storage.#disk.listAll(settings.prefix);
    } catch (error) {
      storage.close();
      throw new ConfigError(`The bucket of BLOBS_URL, ${storage.location}, cannot be used: ${reasonOf(error)}.`);
    }
    await storage.#removeAbandoned();
    return storage;
  }

  write(id: string, content: string | readonly Uint8Array[]): Promise<void> {
    return this.#disk.put(this.#key(id), typeof content === 'string' ? content : Buffer.concat(content));
  }

  async writeStream(id: string, content: AsyncIterable<Uint8Array>): Promise<number> {
    const path = join(this.#spoolFolder, randomUUID());
    const bytes = await writeNewFile(path, content);
    const spooled = createReadStream(path);
    try {
      await this.#disk.putStream(this.#key(id), spooled, { contentLength: bytes });
    } finally {
      spooled.destroy();
      await rm(path, { force: true });
    }
    return bytes;
  }

  readBytes(id: string): Promise<Buffer> {
    return this.#readWhole(id);
  }

  readPart(id: string, part: ByteRange): Promise<Buffer> {
    return this.#readWhole(id, part);
  }

  async #readWhole(id: string, range?: ByteRange): Promise<Buffer> {
    const { Body } = await this.#get(id, range);
    const content = Body as Readable;
    const late = setTimeout(() => content.destroy(new Error('the store has stopped sending')), requestMs);
    try {
      return await buffer(content);
    } catch (error) {
      throw new BlobStorageError(error);
    } finally {
      clearTimeout(late);
    }
  }

  async read(id: string, range?: ByteRange): Promise<{ content: Readable; bytes: number }> {
    const { Body, ContentLength } = await this.#get(id, range);
    // On Node the SDK returns the HTTP message itself.
    return { content: Body as Readable, bytes: ContentLength ?? 0 };
  }

  async size(id: string): Promise<number> {
    const command = new HeadObjectCommand({ Bucket: this.#settings.bucket, Key: this.#key(id) });
    return (await orMissing(this.#client.send(command))).ContentLength ?? 0;
  }

  remove(id: string): Promise<void> {
    return this.#disk.delete(this.#key(id));
  }

  async removeAll(ids: readonly string[]): Promise<void> {
    const Bucket = this.#settings.bucket;
    let refused: string | undefined;
    for (let from = 0; from < ids.length; from += maxDeleted) {
      const Objects = ids.slice(from, from + maxDeleted).map((id) => ({ Key: this.#key(id) }));
      const command = new DeleteObjectsCommand({ Bucket, Delete: { Objects, Quiet: true } });
      const { Errors: [first] = [] } = await orMissing(this.#client.send(command));
      refused ??= first?.Code;
    }
    // The answer is a 200 all the same.
    if (refused !== undefined) throw new BlobStorageError(new Error(`the store answers ${refused}`));
  }

  async hours(): Promise<string[]> {
    await this.#removeAbandoned();
    const hours: string[] = [];
    let page: string | undefined;
    do {
      const options = page === undefined ? {} : { paginationToken: page };
      const { objects, paginationToken } = await this.#disk.listAll(this.#settings.prefix, options);
      for (const object of objects) if (object.isDirectory) hours.push(object.name);
      page = paginationToken;
    } while (page !== undefined);
    return hours;
  }

  /** Lists by the hour's prefix, and deletes a thousand objects per request. */
  removeHour(hour: string): Promise<void> {
    return this.#disk.deleteAll(this.#key(hour));
  }

  close(): void {
    this.#client.destroy();
  }

  #get(id: string, range?: ByteRange) {
    const Range = range === undefined ? undefined : `bytes=${range.first}-${range.last}`;
    return orMissing(
      this.#client.send(new GetObjectCommand({ Bucket: this.#settings.bucket, Key: this.#key(id), Range })),
    );
  }

  #key(id: string): string {
    return this.#settings.prefix === '' ? id : `${this.#settings.prefix}/${id}`;
  }

  async #removeAbandoned(): Promise<void> {
    for (const name of await readdir(this.#spoolFolder)) {
      if (!spoolFile.test(name)) continue;
      const path = join(this.#spoolFolder, name);
      const written = await stat(path).catch(() => undefined);
      if (written !== undefined && written.mtimeMs < Date.now() - abandonedMs) await rm(path, { force: true });
    }
  }
}

async function orMissing<T>(sent: Promise<T>): Promise<T> {
  try {
    return await sent;
  } catch (error) {
    const isMissing = error instanceof S3ServiceException && /^(NoSuchKey|NotFound)$/.test(error.name);
    throw isMissing ? new MissingBlobError() : new BlobStorageError(error);
  }
}

/** The problem with the bucket, briefly and without secrets. */
function reasonOf(error: unknown): string {
  const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error;
  if (!(cause instanceof Error)) return 'no answer';
  if (cause instanceof S3ServiceException) return `the store answers ${cause.name}`;
  return (cause as NodeJS.ErrnoException).code ?? cause.message;
}
