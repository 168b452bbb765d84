/** A recording rule. */
export interface RecordingRule {
  readonly record: string;
  readonly expr: string;
}

/** An alert; its heading in docs/runbook.md is its name. */
export interface AlertRule {
  readonly alert: string;
  readonly expr: string;
  /** How long the expression must hold; left out: once. */
  readonly for?: string;
  /** `page`: somebody acts now; `ticket`: on the next working day. */
  readonly severity: 'page' | 'ticket';
  readonly summary: string;
}
