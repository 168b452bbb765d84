/** An upload in its job's record, beside the request and never in it. */
export interface UploadRecord {
  /** Id of its blob. */
  readonly blob: string;
  /** Name of its field, without a trailing `[]`. */
  readonly field: string;
  /** The original file name. */
  readonly name: string;
  /** Its media type, as declared by the caller. */
  readonly type: string;
  readonly bytes: number;
}

/**
 * A file from a form, already stored. Only the form's reader and a worker (from the job's record) create one, because its
 * holder can have the blob read and deleted. A class, so that no JSON can pass for one; the blob's id cannot be set, and is not
 * in its JSON either.
 */
export class Upload implements UploadRecord {
  readonly field: string;
  readonly name: string;
  readonly type: string;
  readonly bytes: number;
  readonly #blob: string;

  constructor({ blob, field, name, type, bytes }: UploadRecord) {
    this.#blob = blob;
    this.field = field;
    this.name = name;
    this.type = type;
    this.bytes = bytes;
  }

  get blob(): string {
    return this.#blob;
  }

  /** Its entry in the job's record. */
  get record(): UploadRecord {
    const { field, name, type, bytes } = this;
    return { blob: this.#blob, field, name, type, bytes };
  }
}
