import type { Readable } from 'node:stream';

/** A part of a blob: its first and last byte, inclusive. */
export interface ByteRange {
  readonly first: number;
  readonly last: number;
}

/** A missing blob: it never existed, was deleted, or has expired. */
export class MissingBlobError extends Error {
  override readonly name = 'MissingBlobError';

  constructor() {
    super('There is no such blob, or no longer.');
  }
}

/** The storage cannot be read or written for now: a disk or a bucket is unavailable, full, or refuses. */
export class BlobStorageError extends Error {
  override readonly name = 'BlobStorageError';

  constructor(cause: unknown) {
    super('The storage of files cannot be used.', { cause });
  }
}

/**
 * Returns what was read of a blob, or undefined if it is missing.
 * @throws BlobStorageError
 */
export async function unlessMissing<T>(reading: Promise<T>): Promise<T | undefined> {
  try {
    return await reading;
  } catch (error) {
    if (error instanceof MissingBlobError) return undefined;
    throw error;
  }
}

/**
 * Storage for blobs: a folder or a bucket. Ids are `<hour>/<name>`, checked by the caller. Reading a missing blob throws
 * MissingBlobError, and BlobStorageError if existence cannot be determined.
 */
export interface BlobStorage {
  /** Identifies the storage, without secrets: equal exactly for processes that can read each other's blobs. */
  readonly identity: string;
  /** The storage's location for operators, without secrets. */
  readonly location: string;
  /** Stores a text, or bytes in parts. */
  write(id: string, content: string | readonly Uint8Array[]): Promise<void>;
  /**
   * Stores bytes as they arrive and returns their number. Leaves nothing behind if the content fails.
   * @param isForGood whether they must survive a loss of power once it returns
   */
  writeStream(id: string, content: AsyncIterable<Uint8Array>, isForGood?: boolean): Promise<number>;
  /** Reads a whole blob. @param size in bytes, if it is known: then the storage is not asked for it */
  readBytes(id: string, size?: number): Promise<Buffer>;
  /** Reads a part of a blob, as far as the blob has it. */
  readPart(id: string, part: ByteRange): Promise<Buffer>;
  /** Opens a blob, or a part of it, and returns the content and its length in bytes. */
  read(id: string, range?: ByteRange): Promise<{ content: Readable; bytes: number }>;
  size(id: string): Promise<number>;
  /** Removes a blob; a missing one is no error. */
  remove(id: string): Promise<void>;
  /** Removes many blobs, in as few calls as the storage allows. @throws BlobStorageError if it refuses one of them */
  removeAll(ids: readonly string[]): Promise<void>;
  /** The hours that have blobs, as in their ids. */
  hours(): Promise<string[]>;
  removeHour(hour: string): Promise<void>;
  close(): void;
}
