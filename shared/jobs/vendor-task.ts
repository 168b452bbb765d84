/** A task that a vendor runs on its own for a job, as its state holds it from the moment the vendor has named it. */
export interface VendorTask {
  /** Who runs it: every later call goes there. */
  readonly vendor: string;
  /** Which of the keys created it, by a name that does not give it away: no other can ask after it. */
  readonly account: string;
  /** The vendor's name of the model. */
  readonly model: string;
  /** What it is called there. */
  readonly task: string;
  /** The attempt that created it. Later claims only poll. */
  readonly attempt: number;
  /** Calls that it took to begin it; left out: one for each attempt. */
  readonly calls?: number;
  /** When that attempt began, in ms since 1970. */
  readonly beganAt: number;
}

/** The task as the state's field `task`. */
export function taskText(task: VendorTask): string {
  return JSON.stringify(task);
}

/** How often vendors were asked to make something until one did, which is what records tell. */
export function callsFor({ calls, attempt }: VendorTask): number {
  return calls ?? attempt;
}

/** Reads the state's field `task`. @throws Error for text that is none, which means a defect. */
export function readTask(text: string): VendorTask {
  return JSON.parse(text) as VendorTask;
}
