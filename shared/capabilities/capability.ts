/** What a model can be asked to do. Each capability has its own queue and its own workers. */
export const capabilities = ['chat', 'embedding', 'image', 'transcription', 'speech', 'video'] as const;

/** One of the capabilities. */
export type Capability = (typeof capabilities)[number];

/** Whether a word, from a command line say, names a capability. */
export function isCapability(text: string): text is Capability {
  return (capabilities as readonly string[]).includes(text);
}

/**
 * Whether a job may be sent to a vendor a second time after a crash that left no output. Where it only reads, it may: a lost
 * answer costs tokens, not a second artefact.
 */
export const repeatable: Record<Capability, boolean> = {
  chat: true,
  embedding: true,
  image: false,
  transcription: true,
  speech: false,
  video: false,
};

/** Whether a capability's jobs are media work: long and dear, so that each is in the database before it is accepted. */
export const isMedia: Record<Capability, boolean> = {
  chat: false,
  embedding: false,
  image: true,
  transcription: true,
  speech: true,
  video: true,
};
