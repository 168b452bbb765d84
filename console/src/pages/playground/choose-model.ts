import type { Playground } from './make-playground.ts';
import type { PlaygroundTab } from './playground-search.ts';

/** Selects a tab's initial model, as if picked there. */
export function chooseModel(playground: Playground, tab: PlaygroundTab, model: string): void {
  const { chat, images, videos, speech, transcripts } = playground;
  if (tab === 'chat') chat.store.set({ settings: { ...chat.store.get().settings, model } });
  else ({ image: images, video: videos, speech, transcription: transcripts })[tab].setForm({ model });
}
