/** What a model can be asked to do. Each capability has its own queue and its own workers. */
export const capabilities = ['chat'] as const;

export type Capability = (typeof capabilities)[number];

export function isCapability(text: string): text is Capability {
  return (capabilities as readonly string[]).includes(text);
}

/**
 * Whether a job may be sent to a vendor a second time after a crash that left no output. Chat may: a lost answer costs
 * tokens, not a second artefact.
 */
export const repeatable: Record<Capability, boolean> = { chat: true };
