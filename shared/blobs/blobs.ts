import { Slots } from '../runtime/slots.ts';
import { AccountBlobs, checkedId, hourOf } from './account-blobs.ts';
import type { BlobStorage } from './blob-storage.ts';
import type { BucketSettings } from './bucket-settings.ts';
import { FolderStorage } from './folder-storage.ts';

/** Blobs that one process writes at a time, out of its memory: a vendor can make frames faster than a disk takes them. */
const maxWrites = 64;

const hourPattern = /^\d{10}$/;

/**
 * Big bytes beside the jobs, never in them: requests over 64 KiB, media, result files, and frames over 64 KiB. In a bucket
 * where there is one, else in the data folder, which every process that shares a Redis must then share.
 *
 * A blob is read, written and deleted for one account, by `of`: this is the one place that keeps accounts apart.
 */
export class Blobs {
  readonly #storage: BlobStorage;
  readonly #writes = new Slots(maxWrites);

  private constructor(storage: BlobStorage) {
    this.#storage = storage;
  }

  /**
   * @param bucket where the blobs lie; undefined: in the data folder.
   * @throws ConfigError when the folder cannot be written, or the bucket cannot be used.
   */
  static async open(dataDir: string, bucket?: BucketSettings): Promise<Blobs> {
    if (bucket === undefined) return new Blobs(await FolderStorage.open(dataDir));
    // The SDK costs memory and time to load, and most processes never need it.
    const { BucketStorage } = await import('./bucket-storage.ts');
    return new Blobs(await BucketStorage.open(bucket, dataDir));
  }

  /** Names the place where the blobs lie, without secrets: processes with the same one read each other's blobs. */
  get identity(): string {
    return this.#storage.identity;
  }

  /** The place as an operator knows it, without secrets. */
  get location(): string {
    return this.#storage.location;
  }

  /** The blobs of one account. */
  of(account: string): AccountBlobs {
    return new AccountBlobs(this.#storage, this.#writes, account, false);
  }

  /**
   * The same for ids that a record of our own names (a queued job, its state and log, a row): those of the release before,
   * which carry no account, are read and deleted, too.
   */
  ofRecords(account: string): AccountBlobs {
    return new AccountBlobs(this.#storage, this.#writes, account, true);
  }

  /** Reads the file that a signed link names: the link is all that is needed, and whoever calls this has verified it. */
  get signed(): Pick<AccountBlobs, 'read' | 'size'> {
    return {
      read: async (id, range) => await this.#storage.read(checkedId(id), range),
      size: async (id) => await this.#storage.size(checkedId(id)),
    };
  }

  /** Removes all blobs made more than `ms` ago, by the hour. Returns how many hours went. */
  async sweep(ms: number): Promise<number> {
    const oldest = hourOf(new Date(Date.now() - ms));
    const old = (await this.#storage.hours()).filter((hour) => hourPattern.test(hour) && hour < oldest);
    for (const hour of old) await this.#storage.removeHour(hour);
    return old.length;
  }

  /** Lets go of connections. */
  close(): void {
    this.#storage.close();
  }
}
