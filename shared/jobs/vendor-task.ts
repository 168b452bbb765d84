/** A task that a vendor runs on its own for a job, as its state holds it from the moment the vendor has named it. */
export interface VendorTask {
  /** Who runs it: every later call goes there. */
  readonly vendor: string;
  /** What it is called there. */
  readonly task: string;
  /**
   * The attempt that created it: how often the vendor was asked to make something, which is what records tell. Later
   * takings only poll.
   */
  readonly attempt: number;
  /** When that attempt began, in ms since 1970. */
  readonly beganAt: number;
}

/** The task as the state's field `task`. */
export function taskText(task: VendorTask): string {
  return JSON.stringify(task);
}

/** Reads the state's field `task`. @throws Error for text that is none, which means a defect. */
export function readTask(text: string): VendorTask {
  return JSON.parse(text) as VendorTask;
}
