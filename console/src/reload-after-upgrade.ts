/** Storage key of the last reload's time, for as long as the tab is open. */
const key = 'sluice-reloaded-at';
/** If loading fails again within this time (ms) after a reload, the page is broken in another way. */
const againMs = 30_000;

/** Reloads the page when a part of it is missing: the gateway was upgraded while the tab was open. */
export function reloadAfterUpgrade(): void {
  window.addEventListener('vite:preloadError', (event) => {
    if (Date.now() - Number(sessionStorage.getItem(key)) < againMs) return;
    sessionStorage.setItem(key, String(Date.now()));
    event.preventDefault();
    window.location.reload();
  });
}
