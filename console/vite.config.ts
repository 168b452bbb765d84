import { fileURLToPath } from 'node:url';
import react from '@vitejs/plugin-react';
import { defineConfig } from 'vite';

/** Builds the console into dist/console, which the api serves under /console/. */
export default defineConfig({
  root: fileURLToPath(new URL('.', import.meta.url)),
  base: '/console/',
  plugins: [react()],
  build: {
    outDir: fileURLToPath(new URL('../dist/console', import.meta.url)),
    emptyOutDir: true,
    // Nothing is put into the page itself, nor into data: addresses: the Content-Security-Policy takes neither.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    target: 'es2022',
    // The charts alone are more than Vite warns of; they are loaded only with the pages that draw some.
    chunkSizeWarningLimit: 900,
    // How long a slow machine takes for a plugin is no matter of who starts it.
    rolldownOptions: { checks: { bundlerTimings: false } },
  },
});
