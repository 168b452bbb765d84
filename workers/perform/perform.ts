import type { Capability } from '../../shared/capabilities/capability.ts';
import { performChat } from './perform-chat.ts';
import { methodOf, type Perform } from './performance.ts';

/** What becomes of the jobs of each capability. */
export const perform: Record<Capability, Perform> = {
  chat: performChat,
  embedding: ({ vendor, call, sink }) => methodOf(vendor, 'embed')(call, sink),
  image: ({ vendor, call, sink }) => methodOf(vendor, 'image')(call, sink),
  transcription: ({ vendor, call, sink }) => methodOf(vendor, 'transcribe')(call, sink),
  speech: ({ vendor, call, sink }) => methodOf(vendor, 'speak')(call, sink),
};
