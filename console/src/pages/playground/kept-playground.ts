import { keepInTab, keptInTab } from '../../api/tab-storage.ts';
import type { ChatTurn } from './chat/chat-request.ts';
import type { ChatSession, ChatState } from './chat/chat-session.ts';
import type { Playground } from './make-playground.ts';

/** The number changes with the format of the stored data. */
const name = 'playground-1';
/** Maximum stored size of the turns, of unsent pictures, and of one field, in characters. A tab's storage has five million. */
const maxTurnChars = 1_500_000;
const maxPictureChars = 500_000;
const maxFieldChars = 100_000;
/** Delay before changes are stored. A browser being closed gives no later chance. */
const keepMs = 1000;

type Fields = Readonly<Record<string, unknown>>;

interface Kept {
  readonly chat: { readonly settings: Fields; readonly turns: readonly ChatTurn[]; readonly draft: string } & Pick<
    ChatState,
    'images' | 'results'
  >;
  /** For the other tabs: the typed values. Their results are lost with the page. */
  readonly forms: Readonly<Record<string, Fields>>;
}

/** Restores what the tab stored before its last reload, and stores changes from now on. Returns a function that stops this. */
export function keepPlayground(playground: Playground): () => void {
  const { user, chat, images, videos, speech, transcripts } = playground;
  const tasks = { images, videos, speech, transcripts };
  restore(keptInTab(name, user), chat, tasks);
  let timer: number | undefined;
  const keep = (): void => {
    window.clearTimeout(timer);
    timer = undefined;
    const forms = Object.entries(tasks).map(([tab, { store }]) => [tab, typed(store.get().form)]);
    const kept: Kept = { chat: keptChat(chat.store.get()), forms: Object.fromEntries(forms) };
    keepInTab(name, user, JSON.stringify(kept));
  };
  const keepSoon = (): void => {
    timer ??= window.setTimeout(keep, keepMs);
  };
  const ends = [chat, ...Object.values(tasks)].map(({ store }) => store.subscribe(keepSoon));
  window.addEventListener('pagehide', keep);
  return () => {
    for (const end of ends) end();
    window.removeEventListener('pagehide', keep);
    window.clearTimeout(timer);
  };
}

function keptChat({ settings, turns, draft, images, results }: ChatState): Kept['chat'] {
  const pictureChars = images.reduce((sum, { length }) => sum + length, 0);
  return {
    settings: typed(settings),
    turns: newestTurns(turns),
    draft: draft.slice(0, maxFieldChars),
    images: pictureChars <= maxPictureChars ? images : [],
    results,
  };
}

/** The newest turns that fit, starting with a user's turn. */
function newestTurns(turns: readonly ChatTurn[]): readonly ChatTurn[] {
  let room = maxTurnChars;
  let first = turns.length;
  for (let index = turns.length - 1; index >= 0 && room > 0; index -= 1) {
    room -= JSON.stringify(turns[index]).length;
    if (room >= 0 && turns[index]?.role === 'user') first = index;
  }
  return turns.slice(first);
}

/** The typed or chosen fields of a form: no files, and no pictures that are too large. */
function typed(form: object): Fields {
  const isKept = (value: unknown): boolean =>
    typeof value === 'string' ? value.length <= maxFieldChars : typeof value === 'number' || typeof value === 'boolean';
  return Object.fromEntries(Object.entries(form).filter(([, value]) => isKept(value)));
}

interface TaskStore {
  readonly store: { get(): { readonly form: object } };
  setForm(change: object): void;
}

function restore(text: string | undefined, chat: ChatSession, tasks: Readonly<Record<string, TaskStore>>): void {
  if (text === undefined) return;
  const kept = JSON.parse(text) as Kept;
  const { settings, turns, draft, images, results } = kept.chat;
  chat.store.set({
    settings: { ...chat.store.get().settings, ...settings },
    // A running answer ended with the page.
    turns: turns.map((turn) => ('state' in turn && turn.state === 'running' ? { ...turn, state: 'stopped' } : turn)),
    draft,
    images,
    results,
  });
  for (const [tab, session] of Object.entries(tasks)) session.setForm(kept.forms[tab] ?? {});
}
