/** What takes the jobs of one queue and runs them. */
export interface Consumer {
  /** Takes no more, and resolves when those that run are over. */
  close(): Promise<void>;
}
