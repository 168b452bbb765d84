import { ChatSession } from './chat/chat-session.ts';
import type { MadeImage, MadeSpeech, MadeVideo, Transcript } from './tasks/media-work.ts';
import { TaskSession } from './tasks/task-session.ts';

const imageForm = { model: '', prompt: '', size: '', n: 1, quality: '' };
const videoForm = { model: '', prompt: '', size: '', seconds: '', image: '' };
const speechForm = { model: '', input: '', voice: 'alloy', format: 'mp3', speed: 1, instructions: '' };
const transcriptionForm = { model: '', file: null as File | null, language: '', prompt: '' };

/** The state of one user's playground; it survives leaving the page. */
export interface Playground {
  readonly user: string;
  readonly chat: ChatSession;
  readonly images: TaskSession<typeof imageForm, readonly MadeImage[]>;
  readonly videos: TaskSession<typeof videoForm, MadeVideo>;
  readonly speech: TaskSession<typeof speechForm, MadeSpeech>;
  readonly transcripts: TaskSession<typeof transcriptionForm, Transcript>;
}

/**
 * An unused playground.
 * @param user the user's id
 */
export function makePlayground(user: string): Playground {
  return {
    user,
    chat: new ChatSession(),
    images: new TaskSession(imageForm),
    videos: new TaskSession(videoForm),
    speech: new TaskSession(speechForm, ({ url }: MadeSpeech) => URL.revokeObjectURL(url)),
    transcripts: new TaskSession(transcriptionForm),
  };
}
