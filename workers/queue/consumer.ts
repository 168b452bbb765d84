/** Claims the jobs of one queue and runs them. */
export interface Consumer {
  /** Stops claiming, and resolves when the running jobs have finished. */
  close(): Promise<void>;
}
