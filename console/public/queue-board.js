// Names the buttons of the queue browser (bull-board) that show an icon and nothing else, for whoever does not see it.
// A file of its own, not a script in the page: the page's Content-Security-Policy runs none of those.
(() => {
  /** What is inside a button, and what the button is for. */
  const names = [
    ['svg[width="42"]', 'Redis details'],
    ['path[d^="M8 3H5"]', 'Full screen'],
    ['circle[r="10"]', 'Links'],
    ['circle[r="3"]', 'Settings'],
    ['circle[r="1"]', 'Sort and view'],
  ];

  const nameButtons = () => {
    for (const button of document.querySelectorAll('button:not([aria-label]):not([title])')) {
      if (button.textContent.trim() !== '' && button.querySelector('svg style') === null) continue;
      const name = names.find(([inside]) => button.querySelector(inside) !== null)?.[1];
      if (name === undefined) continue;
      button.setAttribute('aria-label', name);
      button.setAttribute('title', name);
      for (const icon of button.querySelectorAll('svg')) icon.setAttribute('aria-hidden', 'true');
    }
  };

  nameButtons();
  new MutationObserver(nameButtons).observe(document.body, { childList: true, subtree: true });
})();
