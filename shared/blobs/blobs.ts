import { createHash } from 'node:crypto';
import { Readable } from 'node:stream';
import { randomHex } from '../ids.ts';
import { Slots } from '../runtime/slots.ts';
import { type BlobStorage, BlobStorageError, type ByteRange, MissingBlobError } from './blob-storage.ts';
import type { BucketSettings } from './bucket-settings.ts';
import { FolderStorage } from './folder-storage.ts';

/** Hour in which a blob was created: blobs lie in one folder per hour, so that old ones are deleted by folder. */
const hourOf = (time: number): string => new Date(time).toISOString().slice(0, 13).replace(/[-T]/g, '');

/** `<hour>/<account>-<random>`, both hexadecimal, the account as a hash. */
const idPattern = /^\d{10}\/([0-9a-f]{12})-[0-9a-f]{23}(\.[a-z0-9]{1,5})?$/;
/** Ids of earlier releases contain a UUID and no account. Rows of old jobs may name them until their files are swept. */
const oldIdPattern = /^\d{10}\/[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}(\.[a-z0-9]{1,5})?$/;

/** An account's tag in the ids of its blobs. */
function accountTag(account: string): string {
  return createHash('sha256').update(account).digest('hex').slice(0, 12);
}

/** Whether an id is one of the account's blobs, or one of an earlier release, whose ids name no account. */
export function isOwnBlob(account: string, id: string): boolean {
  return oldIdPattern.test(id) || (idPattern.exec(id)?.[1] ?? '') === accountTag(account);
}

/**
 * Returns the id if it is well-formed.
 * @throws MissingBlobError for anything else.
 */
function checkedId(id: string): string {
  if (!idPattern.test(id) && !oldIdPattern.test(id)) throw new MissingBlobError();
  return id;
}

/** What all accounts' blobs have in common. */
interface BlobStore {
  readonly storage: BlobStorage;
  readonly writes: Slots;
  readonly now: () => number;
}

/**
 * The blobs of one account. Every id contains its account. Here, an id of another account is a missing blob, for reading and
 * for deleting, as is a malformed id.
 */
export class AccountBlobs {
  readonly #storage: BlobStorage;
  readonly #writes: Slots;
  readonly #now: () => number;
  readonly #account: string;
  readonly #takesOld: boolean;
  #tag: string | undefined;

  /**
   * @param store where they are, the slots shared by the process's writes from memory, and the time by which they are named
   * @param takesOld whether to accept ids of earlier releases, which contain no account.
   */
  constructor({ storage, writes, now }: BlobStore, account: string, takesOld: boolean) {
    this.#storage = storage;
    this.#writes = writes;
    this.#now = now;
    this.#account = account;
    this.#takesOld = takesOld;
  }

  /**
   * Stores a text, or bytes in parts, and returns the blob's id.
   * @throws BlobStorageError
   */
  async put(content: string | readonly Uint8Array[]): Promise<string> {
    const id = this.#newId();
    try {
      await this.#writes.run(() => this.#storage.write(id, content));
    } catch (error) {
      throw new BlobStorageError(error);
    }
    return id;
  }

  /**
   * Returns a blob's text.
   * @throws MissingBlobError
   */
  async text(id: string): Promise<string> {
    return (await this.bytes(id)).toString();
  }

  /**
   * Returns a blob's content.
   * @param size in bytes, if it is known
   * @throws MissingBlobError
   */
  async bytes(id: string, size?: number): Promise<Buffer> {
    return await this.#storage.readBytes(this.#checked(id), size);
  }

  /**
   * Returns a part of a blob's content.
   * @throws MissingBlobError
   */
  async part(id: string, part: ByteRange): Promise<Buffer> {
    return await this.#storage.readPart(this.#checked(id), part);
  }

  /**
   * Stores bytes as they arrive, holding no more in memory than the storage's next step takes, and returns the blob's id and
   * size. Removes the remains of a failed stream.
   * @param options.extension extension of the id, for files that people see.
   */
  async putStream(
    content: Readable | AsyncIterable<Uint8Array>,
    options: { extension?: string | undefined } = {},
  ): Promise<{ id: string; bytes: number }> {
    const id = this.#newId(options.extension);
    // It may fail before the storage begins to listen; the failure is still available then.
    if (content instanceof Readable) content.on('error', () => undefined);
    try {
      return { id, bytes: await this.#storage.writeStream(id, content) };
    } catch (error) {
      // The storage may have failed before it asked for the first chunk.
      if (content instanceof Readable) content.destroy();
      throw error;
    }
  }

  /**
   * Opens a blob, or a part of it, and returns the content and its length. The caller must read it to the end or destroy it.
   * @param range must lie inside the blob.
   * @throws MissingBlobError
   */
  async read(id: string, range?: ByteRange): Promise<{ content: Readable; bytes: number }> {
    return await this.#storage.read(this.#checked(id), range);
  }

  /**
   * Returns a blob's size in bytes.
   * @throws MissingBlobError
   */
  async size(id: string): Promise<number> {
    return await this.#storage.size(this.#checked(id));
  }

  /** Deletes a blob. A missing one is no error, nor is another account's, which stays. */
  async delete(id: string): Promise<void> {
    if (this.isOwn(id)) await this.#storage.remove(id);
  }

  /** Whether an id is one of these blobs'; the account's tag is made once for all of them. */
  isOwn(id: string): boolean {
    const tag = idPattern.exec(id)?.[1];
    return tag === undefined ? this.#takesOld && oldIdPattern.test(id) : tag === this.#ownTag;
  }

  get #ownTag(): string {
    this.#tag ??= accountTag(this.#account);
    return this.#tag;
  }

  #newId(extension?: string): string {
    const random = randomHex(12).slice(0, 23);
    return `${hourOf(this.#now())}/${this.#ownTag}-${random}${extension === undefined ? '' : `.${extension}`}`;
  }

  #checked(id: string): string {
    if (!this.isOwn(id)) throw new MissingBlobError();
    return id;
  }
}

/** Maximum number of concurrent writes from memory per process: a vendor can produce frames faster than a disk takes them. */
const maxWrites = 64;

const hourPattern = /^\d{10}$/;

/**
 * Large data kept outside the jobs: requests over 64 KiB, media, result files, and frames over 64 KiB. Stored in a bucket if
 * one is configured, else in the data folder, which all processes that share a Redis must then share.
 *
 * Blobs are read, written and deleted per account, through `of`: only here are accounts kept apart.
 */
export class Blobs {
  readonly #storage: BlobStorage;
  readonly #store: BlobStore;

  private constructor(storage: BlobStorage, now: () => number) {
    this.#storage = storage;
    this.#store = { storage, writes: new Slots(maxWrites), now };
  }

  /**
   * Opens the storage.
   * @param bucket bucket for the blobs; undefined: the data folder.
   * @param now the time by which blobs are named, in ms since 1970: `sweep` goes by the names, in other processes, too
   * @throws ConfigError when the folder cannot be written, or the bucket cannot be used.
   */
  static async open(dataDir: string, bucket?: BucketSettings, now: () => number = Date.now): Promise<Blobs> {
    if (bucket === undefined) return new Blobs(await FolderStorage.open(dataDir), now);
    // Lazy: the SDK costs memory and time to load, and most processes never need it.
    const { BucketStorage } = await import('./bucket-storage.ts');
    return new Blobs(await BucketStorage.open(bucket, dataDir), now);
  }

  /** Identifies the storage, without secrets: processes with the same identity read each other's blobs. */
  get identity(): string {
    return this.#storage.identity;
  }

  /** The storage's location for operators, without secrets. */
  get location(): string {
    return this.#storage.location;
  }

  /** The blobs of one account. */
  of(account: string): AccountBlobs {
    return new AccountBlobs(this.#store, account, false);
  }

  /**
   * Same as `of`, for ids from the gateway's own records (a queued job, its state and log, a row): ids of earlier releases,
   * which contain no account, can be read and deleted, too.
   */
  ofRecords(account: string): AccountBlobs {
    return new AccountBlobs(this.#store, account, true);
  }

  /**
   * Deletes blobs that the gateway's own records name, by account, as `ofRecords` of each would, in as few calls as the storage
   * allows.
   * @throws BlobStorageError if the storage refuses one of them; the others are gone.
   */
  async deleteAll(ids: ReadonlyMap<string, readonly string[]>): Promise<void> {
    const own = [...ids].flatMap(([account, named]) => {
      const blobs = this.ofRecords(account);
      return named.filter((id) => blobs.isOwn(id));
    });
    await this.#storage.removeAll(own);
  }

  /** Reads the file of a signed link: the link is sufficient authorization, and the caller has verified it. */
  get signed(): Pick<AccountBlobs, 'read' | 'size'> {
    return {
      read: async (id, range) => await this.#storage.read(checkedId(id), range),
      size: async (id) => await this.#storage.size(checkedId(id)),
    };
  }

  /** Stores a file that is kept for good, in `exports/`: no link or id leads to it. Leaves nothing behind if the content fails. */
  async writeExport(name: string, content: AsyncIterable<Uint8Array>): Promise<void> {
    await this.#storage.writeStream(`exports/${name}`, content, true);
  }

  /**
   * Removes all blobs created more than `ms` ago, by the hour. Returns the number of hours removed.
   * @param now ms since 1970
   */
  async sweep(ms: number, now: number = Date.now()): Promise<number> {
    const oldest = hourOf(now - ms);
    const old = (await this.#storage.hours()).filter((hour) => hourPattern.test(hour) && hour < oldest);
    for (const hour of old) await this.#storage.removeHour(hour);
    return old.length;
  }

  /** Closes connections. */
  close(): void {
    this.#storage.close();
  }
}
