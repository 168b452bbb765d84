/**
 * Gives the focus back to a control that was off while its action ran: browsers take it from a control that is disabled, and who
 * uses the keyboard would go on at the beginning of the page. A focus that has moved elsewhere meanwhile stays there.
 */
export function keepFocus(): void {
  let last: EventTarget | null = null;
  document.addEventListener('focusin', ({ target }) => {
    last = target;
  });
  const controls = new MutationObserver((changes) => {
    for (const { target } of changes) {
      if (target !== last || document.activeElement !== document.body) continue;
      if (target instanceof HTMLElement && !target.hasAttribute('disabled')) target.focus({ preventScroll: true });
    }
  });
  controls.observe(document, { subtree: true, attributeFilter: ['disabled'] });
}
