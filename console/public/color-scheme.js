// Sets the colours before the first paint; Mantine keeps the reader's choice under this name.
// A file of its own, not a script in the page: the page's Content-Security-Policy runs none of those.
(() => {
  let choice = null;
  try {
    choice = localStorage.getItem('mantine-color-scheme-value');
  } catch {
    // Storage may be switched off: then the system's choice counts.
  }
  const isDark = choice === 'dark' || (choice !== 'light' && matchMedia('(prefers-color-scheme: dark)').matches);
  document.documentElement.setAttribute('data-mantine-color-scheme', isDark ? 'dark' : 'light');
})();
