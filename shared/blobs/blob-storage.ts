import type { Readable } from 'node:stream';

/** A part of a blob: its first and last byte, both included. */
export interface ByteRange {
  readonly first: number;
  readonly last: number;
}

/** A blob that is not there: never was, was deleted, or has outlived its time. */
export class MissingBlobError extends Error {
  override readonly name = 'MissingBlobError';

  constructor() {
    super('There is no such blob, or no longer.');
  }
}

/** The storage cannot be read for now: a disk or a bucket is away, or refuses. */
export class BlobStorageError extends Error {
  override readonly name = 'BlobStorageError';

  constructor(cause: unknown) {
    super('The storage of files cannot be read.', { cause });
  }
}

/** What was read of a blob, or undefined where it is missing. @throws BlobStorageError */
export async function unlessMissing<T>(reading: Promise<T>): Promise<T | undefined> {
  try {
    return await reading;
  } catch (error) {
    if (error instanceof MissingBlobError) return undefined;
    throw error;
  }
}

/**
 * Where blobs lie: a folder, or a bucket. Ids are `<hour>/<name>`, checked by the caller. Reading what is not there is a
 * MissingBlobError, and a BlobStorageError where that cannot be told.
 */
export interface BlobStorage {
  /** Names the place, without secrets: the same for all processes that can read each other's blobs, and for no other. */
  readonly identity: string;
  /** The place as an operator knows it, without secrets. */
  readonly location: string;
  write(id: string, content: string | Uint8Array): Promise<void>;
  /** Stores bytes as they come and answers how many they were. Nothing stays behind of content that fails. */
  writeStream(id: string, content: AsyncIterable<Uint8Array>): Promise<number>;
  readText(id: string): Promise<string>;
  /** Opens a blob, or a part of it, and answers the number of bytes that will come. */
  read(id: string, range?: ByteRange): Promise<{ content: Readable; bytes: number }>;
  size(id: string): Promise<number>;
  /** Removes a blob; one that is not there is no error. */
  remove(id: string): Promise<void>;
  /** The hours of which there are blobs, as in their ids. */
  hours(): Promise<string[]>;
  removeHour(hour: string): Promise<void>;
  close(): void;
}
