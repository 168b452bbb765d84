import type { Capability } from '../../shared/capabilities/capability.ts';
import { executeChat } from './execute-chat.ts';
import { executeEmbedding } from './execute-embedding.ts';
import { executeImage } from './execute-image.ts';
import { executeSpeech } from './execute-speech.ts';
import { executeVideo } from './execute-video.ts';
import { type ExecuteTask, methodOf } from './execution.ts';
import { leavingOut } from './leaving-out.ts';

/** Executes the jobs of each capability. */
export const execute: Record<Capability, ExecuteTask> = {
  chat: executeChat,
  embedding: leavingOut('embedding', executeEmbedding),
  image: leavingOut('image', executeImage),
  transcription: leavingOut('transcription', ({ vendor, call, sink }) => methodOf(vendor, 'transcribe')(call, sink)),
  speech: leavingOut('speech', executeSpeech),
  video: leavingOut('video', executeVideo),
};
