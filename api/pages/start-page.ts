import { readFileSync } from 'node:fs';
import type { ExampleModels } from '../../shared/catalogue/example-models.ts';
import { escapeHtml, logo, policyOf } from './page-parts.ts';

/** Contents of the start page. */
export interface StartPageOptions {
  /** Without a trailing slash and without `/v1`. */
  readonly baseUrl: string;
  readonly examples: ExampleModels;
  /** Whether the built-in sandbox vendor is on. */
  readonly sandbox: boolean;
}

/** Wide code scrolls, so it is focusable by keyboard and has a label. */
const template = readFileSync(new URL('./start-page.html', import.meta.url), 'utf8').replaceAll(
  '<pre title=',
  '<pre tabindex="0" role="region" aria-label=',
);
/** Shown only if a model makes videos. */
const videoSection = /<!--video-->\n([\s\S]*?)<!--\/video-->\n\n/;

/** `Content-Security-Policy` of the page: its one inline style and script and the icon, and nothing else. */
export const startPagePolicy = policyOf(template);

/** Renders the page at `/`: how to call this server, as HTML. Anyone may read it, so it shows no key, no version and no owner. */
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
