/** The lines of one queue. */
interface QueueLines {
  /** Routes of a vendor that jobs wait for. */
  routesOf(vendor: string): readonly string[];
  /** A route has capacity for one more job. */
  hasCapacity(route: string): void;
  /** The same, if those that `hasCapacity` names leave it. */
  mayHaveCapacity(route: string): void;
}

/** The jobs of a queue that wait for a route. */
interface VendorLine {
  readonly queue: QueueLines;
  readonly route: string;
  /** By which they have their turns. */
  readonly name: string;
}

/**
 * The lines of vendors that limit the calls of all their routes together: what a call leaves may be any route's, so the lines have it
 * in turn. Else the line of the route whose call has ended would always be the first to know.
 */
export class VendorLines {
  readonly #queues: QueueLines[] = [];
  /** Name of the line that had the last turn, by vendor. */
  readonly #last = new Map<string, string>();

  /** Adds those of a queue. */
  add(queue: QueueLines): void {
    this.#queues.push(queue);
  }

  /** A call of such a vendor has ended. @param own those of its job's queue */
  hasCapacity(own: QueueLines, route: string): void {
    const vendor = route.slice(0, route.indexOf('/'));
    const line = this.#next(vendor);
    if (line === undefined) return;
    this.#last.set(vendor, line.name);
    line.queue.hasCapacity(line.route);
    // The other route may have a limit of its own, which keeps it from using this.
    if (line.queue !== own || line.route !== route) own.mayHaveCapacity(route);
  }

  #next(vendor: string): VendorLine | undefined {
    const last = this.#last.get(vendor) ?? '';
    let first: VendorLine | undefined;
    let next: VendorLine | undefined;
    for (const [number, queue] of this.#queues.entries()) {
      for (const route of queue.routesOf(vendor)) {
        const line = { queue, route, name: `${number} ${route}` };
        if (first === undefined || line.name < first.name) first = line;
        if (line.name > last && (next === undefined || line.name < next.name)) next = line;
      }
    }
    return next ?? first;
  }
}
