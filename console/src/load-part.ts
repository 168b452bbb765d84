/** Storage key of the last reload's time, for as long as the tab is open. */
const key = 'sluice-reloaded-at';
/** If a part is missing again within this time (ms) after a reload, the gateway lacks it. */
const againMs = 30_000;
/** Pause between attempts while the gateway is away, in ms. */
const pauseMs = 2000;

/**
 * Loads a part of the console. While the gateway cannot be reached it goes on trying: what is open stays, with what was typed.
 * A part that an upgrade has removed reloads the page, and so gets the new one.
 * @throws Error when the part is missing after a reload, too
 */
export async function loadPart<Part>(load: () => Promise<Part>): Promise<Part> {
  for (;;) {
    try {
      return await load();
    } catch {
      if (await isGatewayThere()) return await reload();
      await new Promise((resolve) => setTimeout(resolve, pauseMs));
    }
  }
}

function isGatewayThere(): Promise<boolean> {
  return fetch('/console/', { method: 'HEAD', cache: 'no-store' }).then(
    ({ ok }) => ok,
    () => false,
  );
}

/** Does not return: the page is left. */
function reload(): Promise<never> {
  if (Date.now() - Number(sessionStorage.getItem(key)) < againMs) {
    throw new Error('A part of this page is missing on the gateway. Try again later, or ask its operator.');
  }
  sessionStorage.setItem(key, String(Date.now()));
  window.location.reload();
  return new Promise(() => {});
}
