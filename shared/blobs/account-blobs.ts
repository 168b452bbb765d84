import { createHash, randomBytes } from 'node:crypto';
import { Readable } from 'node:stream';
import type { Slots } from '../runtime/slots.ts';
import { type BlobStorage, type ByteRange, MissingBlobError } from './blob-storage.ts';

/** Hour in which a blob was made: blobs lie in a folder per hour, so that old ones go by the folder. */
export const hourOf = (time: Date): string => time.toISOString().slice(0, 13).replace(/[-T]/g, '');

/**
 * `<hour>/<account>-<random>`, both hexadecimal, the account by its hash. As long as the ids of the release before, so that
 * its processes can read these.
 */
const idPattern = /^\d{10}\/([0-9a-f]{12})-[0-9a-f]{23}(\.[a-z0-9]{1,5})?$/;
/** Ids of the release before hold a UUID and no account. */
const oldIdPattern = /^\d{10}\/[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}(\.[a-z0-9]{1,5})?$/;

/** What stands for an account in the ids of its blobs. */
function accountTag(account: string): string {
  return createHash('sha256').update(account).digest('hex').slice(0, 12);
}

/** Whether an id is one of the account's blobs, or one of the release before, which tells no account. */
export function isOwnBlob(account: string, id: string): boolean {
  return oldIdPattern.test(id) || (idPattern.exec(id)?.[1] ?? '') === accountTag(account);
}

/** @throws MissingBlobError for what is the id of nobody's blob. */
export function checkedId(id: string): string {
  if (!idPattern.test(id) && !oldIdPattern.test(id)) throw new MissingBlobError();
  return id;
}

/**
 * The blobs of one account. Every id carries its account, and an id that carries another one resolves to nothing here, in
 * reading and in deleting: it is a missing blob, as is what is no id at all.
 */
export class AccountBlobs {
  readonly #storage: BlobStorage;
  readonly #writes: Slots;
  readonly #account: string;
  readonly #takesOld: boolean;
  #tag: string | undefined;

  /**
   * @param writes what the process's writes out of its memory share
   * @param takesOld whether ids are taken that the release before made: they carry no account.
   */
  constructor(storage: BlobStorage, writes: Slots, account: string, takesOld: boolean) {
    this.#storage = storage;
    this.#writes = writes;
    this.#account = account;
    this.#takesOld = takesOld;
  }

  /** Stores bytes and returns the blob's id. */
  async put(content: string | Uint8Array): Promise<string> {
    const id = this.#newId();
    await this.#writes.run(() => this.#storage.write(id, content));
    return id;
  }

  /** A blob's text. @throws MissingBlobError */
  async text(id: string): Promise<string> {
    return await this.#storage.readText(this.#checked(id));
  }

  /**
   * Stores bytes as they come, never more in memory than the storage's next step takes, and returns the blob's id and
   * size. What a failed stream leaves behind goes.
   * @param options.extension ending of the id, for a file that people will see.
   */
  async putStream(
    content: Readable | AsyncIterable<Uint8Array>,
    options: { extension?: string | undefined } = {},
  ): Promise<{ id: string; bytes: number }> {
    const id = this.#newId(options.extension);
    // It may fail before the storage begins to listen; the failure is still there when it does.
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
   * Opens a blob, or a part of it, and returns how many bytes come. Whoever does reads it to its end or destroys it.
   * @param range must lie inside the blob.
   * @throws MissingBlobError
   */
  async read(id: string, range?: ByteRange): Promise<{ content: Readable; bytes: number }> {
    return await this.#storage.read(this.#checked(id), range);
  }

  /** A blob's size in bytes. @throws MissingBlobError */
  async size(id: string): Promise<number> {
    return await this.#storage.size(this.#checked(id));
  }

  /** Removes a blob; one that is gone already is no error, nor is another account's, which stays. */
  async delete(id: string): Promise<void> {
    if (this.#isOwn(id)) await this.#storage.remove(id);
  }

  get #ownTag(): string {
    this.#tag ??= accountTag(this.#account);
    return this.#tag;
  }

  #newId(extension?: string): string {
    const random = randomBytes(12).toString('hex').slice(0, 23);
    return `${hourOf(new Date())}/${this.#ownTag}-${random}${extension === undefined ? '' : `.${extension}`}`;
  }

  #isOwn(id: string): boolean {
    const tag = idPattern.exec(id)?.[1];
    return tag === undefined ? this.#takesOld && oldIdPattern.test(id) : tag === this.#ownTag;
  }

  #checked(id: string): string {
    if (!this.#isOwn(id)) throw new MissingBlobError();
    return id;
  }
}
