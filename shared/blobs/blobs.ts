import { Slots } from '../runtime/slots.ts';
import { AccountBlobs, checkedId, hourOf } from './account-blobs.ts';
import type { BlobStorage } from './blob-storage.ts';
import type { BucketSettings } from './bucket-settings.ts';
import { FolderStorage } from './folder-storage.ts';

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
  readonly #writes = new Slots(maxWrites);

  private constructor(storage: BlobStorage) {
    this.#storage = storage;
  }

  /**
   * Opens the storage.
   * @param bucket bucket for the blobs; undefined: the data folder.
   * @throws ConfigError when the folder cannot be written, or the bucket cannot be used.
   */
  static async open(dataDir: string, bucket?: BucketSettings): Promise<Blobs> {
    if (bucket === undefined) return new Blobs(await FolderStorage.open(dataDir));
    // Lazy: the SDK costs memory and time to load, and most processes never need it.
    const { BucketStorage } = await import('./bucket-storage.ts');
    return new Blobs(await BucketStorage.open(bucket, dataDir));
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
    return new AccountBlobs(this.#storage, this.#writes, account, false);
  }

  /**
   * Same as `of`, for ids from the gateway's own records (a queued job, its state and log, a row): ids of the previous release,
   * which contain no account, can be read and deleted, too.
   */
  ofRecords(account: string): AccountBlobs {
    return new AccountBlobs(this.#storage, this.#writes, account, true);
  }

  /** Reads the file of a signed link: the link is sufficient authorization, and the caller has verified it. */
  get signed(): Pick<AccountBlobs, 'read' | 'size'> {
    return {
      read: async (id, range) => await this.#storage.read(checkedId(id), range),
      size: async (id) => await this.#storage.size(checkedId(id)),
    };
  }

  /** Removes all blobs created more than `ms` ago, by the hour. Returns the number of hours removed. */
  async sweep(ms: number): Promise<number> {
    const oldest = hourOf(new Date(Date.now() - ms));
    const old = (await this.#storage.hours()).filter((hour) => hourPattern.test(hour) && hour < oldest);
    for (const hour of old) await this.#storage.removeHour(hour);
    return old.length;
  }

  /** Closes connections. */
  close(): void {
    this.#storage.close();
  }
}
