/** Where it is kept which page was reloaded, for as long as the tab is open. */
const key = 'sluice-reloaded-at';
/** A page that cannot be loaded again so soon (ms) after a reload is broken in another way. */
const againMs = 30_000;

/** Loads the page anew when a part of it is gone: the gateway was upgraded while the tab was open. */
export function reloadAfterUpgrade(): void {
  window.addEventListener('vite:preloadError', (event) => {
    if (Date.now() - Number(sessionStorage.getItem(key)) < againMs) return;
    sessionStorage.setItem(key, String(Date.now()));
    event.preventDefault();
    window.location.reload();
  });
}
