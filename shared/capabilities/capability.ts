/** Kinds of work that models do. Each capability has its own queue and its own workers. */
export const capabilities = ['chat', 'embedding', 'image', 'transcription', 'speech', 'video'] as const;

/** A single capability. */
export type Capability = (typeof capabilities)[number];

/** Whether a text, from a command line say, names a capability. */
export function isCapability(text: string): text is Capability {
  return (capabilities as readonly string[]).includes(text);
}

/**
 * Whether a job may be sent to a vendor a second time after a crash that left no output. Safe for capabilities that only read:
 * a lost answer costs tokens, not a second artefact.
 */
export const repeatable: Record<Capability, boolean> = {
  chat: true,
  embedding: true,
  image: false,
  transcription: true,
  speech: false,
  video: false,
};

/** Whether a capability's jobs are media work: long and expensive, so that each is in the database before it is accepted. */
export const isMedia: Record<Capability, boolean> = {
  chat: false,
  embedding: false,
  image: true,
  transcription: true,
  speech: true,
  video: true,
};
