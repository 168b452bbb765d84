import { createHash, randomBytes } from 'node:crypto';
import { Readable } from 'node:stream';
import type { Slots } from '../runtime/slots.ts';
import { type BlobStorage, type ByteRange, MissingBlobError } from './blob-storage.ts';

/** Hour in which a blob was created: blobs lie in one folder per hour, so that old ones are deleted by folder. */
export const hourOf = (time: Date): string => time.toISOString().slice(0, 13).replace(/[-T]/g, '');

/**
 * `<hour>/<account>-<random>`, both hexadecimal, the account as a hash. As long as the ids of the previous release, so that its
 * processes can read these.
 */
const idPattern = /^\d{10}\/([0-9a-f]{12})-[0-9a-f]{23}(\.[a-z0-9]{1,5})?$/;
/** Ids of the previous release contain a UUID and no account. */
const oldIdPattern = /^\d{10}\/[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}(\.[a-z0-9]{1,5})?$/;

/** An account's tag in the ids of its blobs. */
function accountTag(account: string): string {
  return createHash('sha256').update(account).digest('hex').slice(0, 12);
}

/** Whether an id is one of the account's blobs, or one of the previous release, whose ids name no account. */
export function isOwnBlob(account: string, id: string): boolean {
  return oldIdPattern.test(id) || (idPattern.exec(id)?.[1] ?? '') === accountTag(account);
}

/**
 * Returns the id if it is well-formed.
 * @throws MissingBlobError for anything else.
 */
export function checkedId(id: string): string {
  if (!idPattern.test(id) && !oldIdPattern.test(id)) throw new MissingBlobError();
  return id;
}

/**
 * The blobs of one account. Every id contains its account. Here, an id of another account is a missing blob, for reading and
 * for deleting, as is a malformed id.
 */
export class AccountBlobs {
  readonly #storage: BlobStorage;
  readonly #writes: Slots;
  readonly #account: string;
  readonly #takesOld: boolean;
  #tag: string | undefined;

  /**
   * @param writes slots shared by the process's writes from memory
   * @param takesOld whether to accept ids of the previous release, which contain no account.
   */
  constructor(storage: BlobStorage, writes: Slots, account: string, takesOld: boolean) {
    this.#storage = storage;
    this.#writes = writes;
    this.#account = account;
    this.#takesOld = takesOld;
  }

  /** Stores a text, or bytes in parts, and returns the blob's id. */
  async put(content: string | readonly Uint8Array[]): Promise<string> {
    const id = this.#newId();
    await this.#writes.run(() => this.#storage.write(id, content));
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
   * @throws MissingBlobError
   */
  async bytes(id: string): Promise<Buffer> {
    return await this.#storage.readBytes(this.#checked(id));
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
