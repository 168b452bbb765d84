import type { Capability } from '../../shared/capabilities/capability.ts';
import { droppingRefused } from './dropping-refused.ts';
import { executeCompletion } from './execute-completion.ts';
import { executeEmbedding } from './execute-embedding.ts';
import { executeImage } from './execute-image.ts';
import { executeMessage, executeTokenCount } from './execute-message.ts';
import { executeResponse } from './execute-response.ts';
import { executeSpeech } from './execute-speech.ts';
import { executeTranscription } from './execute-transcription.ts';
import { executeVideo } from './execute-video.ts';
import { type Execute, type ExecuteTask, notOffered } from './execution.ts';
import { leavingOut } from './leaving-out.ts';
import { withoutThoughts } from './without-hints.ts';

/** A chat completion, a legacy one, a response, a message or its token count: all are jobs of the chat models. */
export const executeChat: Execute = async (asked) => {
  const execution = asked.dropsUnsupported ? { ...asked, vendor: droppingRefused(asked.vendor, asked.row) } : asked;
  const { endpoint, vendor, call, sink } = execution;
  if (endpoint === 'completions') return await executeCompletion(execution);
  if (endpoint === 'responses') return await executeResponse(execution);
  if (endpoint === 'messages') return await executeMessage(execution);
  if (endpoint === 'messages.count_tokens') return await executeTokenCount(execution);
  const { chat, vendorRow } = execution.row;
  const isStrict = chat?.hints === false || vendorRow.chat?.hints === false;
  if (vendor.chat === undefined) throw notOffered(vendor, 'chat');
  return await vendor.chat(isStrict ? withoutThoughts(call, execution.row) : call, sink);
};

/** Executes the jobs of each capability. */
export const execute: Record<Capability, ExecuteTask> = {
  chat: executeChat,
  embedding: leavingOut('embedding', executeEmbedding),
  image: leavingOut('image', executeImage),
  transcription: leavingOut('transcription', executeTranscription),
  speech: leavingOut('speech', executeSpeech),
  video: leavingOut('video', executeVideo),
};
