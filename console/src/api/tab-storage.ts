/** Names in the tab's storage that are somebody's, and end with the session. */
const prefix = 'sluice-kept:';

const listeners = new Set<() => void>();

/** Tells the other tabs of this browser: they have what was written there in their own storage. */
const otherTabs = new BroadcastChannel('sluice-forget');
otherTabs.onmessage = forget;

/** Keeps a text for a reload of this tab, for one user. Where the browser refuses, what was kept before goes, too. */
export function keepInTab(name: string, user: string, text: string): void {
  try {
    sessionStorage.setItem(prefix + name, JSON.stringify({ user, text }));
  } catch {
    forgetInTab(name);
  }
}

/** What was kept for this user; what was kept for another one is deleted. */
export function keptInTab(name: string, user: string): string | undefined {
  try {
    const kept = JSON.parse(sessionStorage.getItem(prefix + name) ?? 'null') as {
      user?: unknown;
      text?: unknown;
    } | null;
    if (kept?.user === user && typeof kept.text === 'string') return kept.text;
  } catch {
    // It is none of ours, or the browser keeps nothing.
  }
  forgetInTab(name);
  return undefined;
}

/** Forgets, in every tab, what was kept for whoever is signed out. */
export function forgetKept(): void {
  forget();
  otherTabs.postMessage('forget');
}

/** Has what is in memory be forgotten along with what is kept. */
export function onForget(listener: () => void): void {
  listeners.add(listener);
}

function forget(): void {
  // First those who would keep it again.
  for (const listener of listeners) listener();
  try {
    for (const name of Object.keys(sessionStorage)) if (name.startsWith(prefix)) sessionStorage.removeItem(name);
  } catch {
    // A browser that keeps nothing has nothing to forget.
  }
}

function forgetInTab(name: string): void {
  try {
    sessionStorage.removeItem(prefix + name);
  } catch {
    // As above.
  }
}
