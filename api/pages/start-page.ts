import { readFileSync } from 'node:fs';
import type { ExampleModels } from '../../shared/catalogue/example-models.ts';
import { escapeHtml, logo, policyOf } from './page-parts.ts';

/** What the start page tells. */
export interface StartPageOptions {
  /** Without a slash at the end and without `/v1`. */
  readonly baseUrl: string;
  readonly examples: ExampleModels;
  /** Whether the built-in stand-in vendor is on. */
  readonly sandbox: boolean;
}

/** Code scrolls where it is too wide: the keyboard reaches it, and it has a name. */
const template = readFileSync(new URL('./start-page.html', import.meta.url), 'utf8').replaceAll(
  '<pre title=',
  '<pre tabindex="0" role="region" aria-label=',
);
/** Shown only where a model makes videos. */
const videoSection = /<!--video-->\n([\s\S]*?)<!--\/video-->\n\n/;

/** Value of the page's `Content-Security-Policy` header: its one inline style and script and the icon, and nothing else from anywhere. */
export const startPagePolicy = policyOf(template);

/**
 * The page at `/`: how to call what runs, as HTML. It shows no key, and neither the version nor who is behind it: anyone may
 * read it.
 */
export function startPage(options: StartPageOptions): string {
  const { baseUrl, examples, sandbox } = options;
  const values: Record<string, string> = {
    baseUrl,
    chatModel: examples.chat,
    imageModel: examples.image,
    speechModel: examples.speech,
    videoModel: examples.video ?? '',
    note: sandbox
      ? 'The sandbox is on: a built-in stand-in that answers like a vendor, so that everything can be tried without an account anywhere. It is not a real model.'
      : '',
  };
  const shown = template.replace(videoSection, examples.video === undefined ? '' : '$1');
  return shown.replace(/\{\{(\w+)\}\}/g, (_, name: string) =>
    name === 'logo' ? logo : escapeHtml(values[name] ?? ''),
  );
}
