import type { Capability } from '../../shared/capabilities/capability.ts';
import { leavingOut } from './leaving-out.ts';
import { performChat } from './perform-chat.ts';
import { performEmbedding } from './perform-embedding.ts';
import { performImage } from './perform-image.ts';
import { performSpeech } from './perform-speech.ts';
import { performVideo } from './perform-video.ts';
import { methodOf, type PerformTask } from './performance.ts';

/** What becomes of the jobs of each capability. */
export const perform: Record<Capability, PerformTask> = {
  chat: performChat,
  embedding: leavingOut('embedding', performEmbedding),
  image: leavingOut('image', performImage),
  transcription: leavingOut('transcription', ({ vendor, call, sink }) => methodOf(vendor, 'transcribe')(call, sink)),
  speech: leavingOut('speech', performSpeech),
  video: leavingOut('video', performVideo),
};
