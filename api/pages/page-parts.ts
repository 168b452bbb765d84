import { createHash } from 'node:crypto';

/** The product's logo. */
export const logo =
  '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32"><title>Sluice</title><rect width="32" height="32" rx="7" fill="#0b6e8f"/><path d="M7 11c3-3 6-3 9 0s6 3 9 0M7 17c3-3 6-3 9 0s6 3 9 0M7 23c3-3 6-3 9 0s6 3 9 0" fill="none" stroke="#fff" stroke-width="2.4" stroke-linecap="round"/></svg>';

/**
 * Returns the `Content-Security-Policy` of a page that has one inline style and at most one inline script, shows the icon,
 * and loads nothing else.
 * @param page its HTML, or the template of it
 */
export function policyOf(page: string): string {
  const script = hashOf(page, 'script');
  return [
    "default-src 'none'",
    `style-src ${hashOf(page, 'style') ?? "'none'"}`,
    ...(script === undefined ? [] : [`script-src ${script}`]),
    "img-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ].join('; ');
}

function hashOf(page: string, element: 'style' | 'script'): string | undefined {
  const text = new RegExp(`<${element}>([\\s\\S]*?)</${element}>`).exec(page)?.[1];
  return text === undefined ? undefined : `'sha256-${createHash('sha256').update(text).digest('base64')}'`;
}

const entities: Record<string, string> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' };

/** Escapes a text for HTML, including quoted attributes. */
export function escapeHtml(text: string): string {
  return text.replace(/[&<>"']/g, (character) => entities[character] ?? character);
}
