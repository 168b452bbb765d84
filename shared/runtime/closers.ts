/** A step of closing; its signal is aborted when the time for closing is over. */
export type Closer = (signal: AbortSignal) => Promise<void> | void;

/** What a process has opened, to be closed in reverse: what was opened last may use all that was opened before it. */
export class Closers {
  readonly #closers: Closer[] = [];

  add(close: Closer): void {
    this.#closers.push(close);
  }

  /** Adds a resource's own `close`, and returns the resource. */
  use<Resource extends { close(): unknown }>(resource: Resource): Resource {
    this.add(async () => void (await resource.close()));
    return resource;
  }

  /** Closes everything. One that fails keeps no other open. @throws AggregateError the failures, once all are closed. */
  async close(signal: AbortSignal): Promise<void> {
    const errors: unknown[] = [];
    for (let close = this.#closers.pop(); close !== undefined; close = this.#closers.pop()) {
      try {
        await close(signal);
      } catch (error) {
        errors.push(error);
      }
    }
    if (errors.length > 0) throw new AggregateError(errors, 'closing failed');
  }
}
