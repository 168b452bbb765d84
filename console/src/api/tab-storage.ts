/** Prefix of names in the tab's storage that belong to a user, and end with the session. */
const prefix = 'sluice-kept:';

const listeners = new Set<() => void>();

/** Notifies the other tabs of this browser, which have their own storage. */
const otherTabs = new BroadcastChannel('sluice-forget');
otherTabs.onmessage = forget;

/** Stores a text for a reload of this tab, for one user. If the browser refuses, the previously stored text is removed, too. */
export function keepInTab(name: string, user: string, text: string): void {
  try {
    sessionStorage.setItem(prefix + name, JSON.stringify({ user, text }));
  } catch {
    forgetInTab(name);
  }
}

/** The text stored for this user; one stored for another user is deleted. */
export function keptInTab(name: string, user: string): string | undefined {
  try {
    const kept = JSON.parse(sessionStorage.getItem(prefix + name) ?? 'null') as {
      user?: unknown;
      text?: unknown;
    } | null;
    if (kept?.user === user && typeof kept.text === 'string') return kept.text;
  } catch {
    // It has another format, or the browser stores nothing.
  }
  forgetInTab(name);
  return undefined;
}

/** Forgets, in every tab, the data stored for the user who signs out. */
export function forgetKept(): void {
  forget();
  otherTabs.postMessage('forget');
}

/** Registers a listener that clears in-memory data along with the stored data. */
export function onForget(listener: () => void): void {
  listeners.add(listener);
}

function forget(): void {
  // Listeners first, as they would store it again.
  for (const listener of listeners) listener();
  try {
    for (const name of Object.keys(sessionStorage)) if (name.startsWith(prefix)) sessionStorage.removeItem(name);
  } catch {
    // A browser that stores nothing has nothing to forget.
  }
}

/** Forgets one stored text. */
export function forgetInTab(name: string): void {
  try {
    sessionStorage.removeItem(prefix + name);
  } catch {
    // As above.
  }
}
