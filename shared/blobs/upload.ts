/** An upload as it stands in its job's own record, beside the request and never in it. */
export interface UploadRecord {
  /** Id of its blob. */
  readonly blob: string;
  /** Name of its field, without a `[]` at the end. */
  readonly field: string;
  /** The name that the caller's file had. */
  readonly name: string;
  /** Its media type, as the caller said. */
  readonly type: string;
  readonly bytes: number;
}

/**
 * A file that a caller sent in a form, stored already. The form's reader makes one, and a worker does of the job's record:
 * nothing else may, because whoever holds one can have its blob read and deleted. An instance, so that no JSON can pass for
 * one; where its blob lies cannot be set, and is not in its JSON either.
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

  /** What the job's record holds of it. */
  get record(): UploadRecord {
    const { field, name, type, bytes } = this;
    return { blob: this.#blob, field, name, type, bytes };
  }
}
