import { onForget } from '../../api/tab-storage.ts';
import { ChatSession } from './chat-session.ts';
import { keepPlayground } from './kept-playground.ts';
import type { MadeImage, MadeSpeech, MadeVideo, Transcript } from './media-work.ts';
import { TaskSession } from './task-session.ts';

const imageForm = { model: '', prompt: '', size: '', n: 1, quality: '' };
const videoForm = { model: '', prompt: '', size: '', seconds: '', image: '' };
const speechForm = { model: '', input: '', voice: 'alloy', format: 'mp3', speed: 1, instructions: '' };
const transcriptionForm = { model: '', file: null as File | null, language: '', prompt: '' };

/** Everything of one reader's playground; it stays while the page is left. */
export interface Playground {
  readonly user: string;
  readonly chat: ChatSession;
  readonly images: TaskSession<typeof imageForm, readonly MadeImage[]>;
  readonly videos: TaskSession<typeof videoForm, MadeVideo>;
  readonly speech: TaskSession<typeof speechForm, MadeSpeech>;
  readonly transcripts: TaskSession<typeof transcriptionForm, Transcript>;
}

function makePlayground(user: string): Playground {
  return {
    user,
    chat: new ChatSession(),
    images: new TaskSession(imageForm),
    videos: new TaskSession(videoForm),
    speech: new TaskSession(speechForm, ({ url }: MadeSpeech) => URL.revokeObjectURL(url)),
    transcripts: new TaskSession(transcriptionForm),
  };
}

/** The playground of who is signed in, and what ends its being kept for a reload. */
let current: { readonly playground: Playground; readonly endKeeping: () => void } | undefined;

/** The playground of who is signed in: another user never sees what the last one wrote. @param user the user's id */
export function playgroundOf(user: string): Playground {
  if (current?.playground.user === user) return current.playground;
  leave();
  const playground = makePlayground(user);
  current = { playground, endKeeping: keepPlayground(playground) };
  return playground;
}

function leave(): void {
  current?.endKeeping();
  current?.playground.chat.stop();
  current = undefined;
}

onForget(leave);
