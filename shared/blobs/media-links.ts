/** A link to media in a request. */
export interface MediaLink {
  /** The object or list that contains it under `key`. */
  readonly holder: Record<string, unknown>;
  readonly key: string;
  readonly url: string;
  /** Its path: `messages[0].content[1].image_url.url`. */
  readonly path: string;
}

/** Fields that name media: `url`, `image_url`, `file_url`, `image_urls`, `uri`. */
const linkKey = /(?:^|_)ur[il]s?$/;

/** Request fields that contain no media but may contain `url`: schemas, and the caller's metadata. */
const withoutMedia: ReadonlySet<string> = new Set([
  ...['tools', 'functions', 'tool_choice', 'web_search_options', 'response_format', 'output_config', 'output_format'],
  ...['text', 'metadata'],
]);

/** Items and blocks that record a model's calls and their arguments: links in them are never fetched. */
const modelOutput = /(?:_call|^tool_use)$/;

/** Found in each request that contains a link: most do not, and need not be walked. Its keys must be written without escapes. */
export const linkMark = /ur(?:ls?|i)"/;

/** Whether a request may contain a link. */
export function mayHoldLink(request: string | Buffer): boolean {
  if (typeof request === 'string') return linkMark.test(request);
  return request.includes('url"') || request.includes('urls"') || request.includes('uri"');
}

/** Every media link in a request of any endpoint that a vendor may fetch. */
export function mediaLinks(request: object): MediaLink[] {
  const links: MediaLink[] = [];
  const path: string[] = [];
  const visit = (value: object, isLinkList: boolean): void => {
    const isList = Array.isArray(value);
    for (const key of Object.keys(value)) {
      const child = (value as Record<string, unknown>)[key];
      if (child === null || (path.length === 0 && withoutMedia.has(key))) continue;
      const isLink = isList ? isLinkList : linkKey.test(key);
      if (typeof child === 'string') {
        if (isLink && child !== '') {
          links.push({ holder: value as Record<string, unknown>, key, url: child, path: pathOf(path, key, isList) });
        }
      } else if (typeof child === 'object' && !(isList ? isModelOutput(child as object) : key === 'annotations')) {
        path.push(isList ? `[${key}]` : `.${key}`);
        visit(child as object, isLink);
        path.pop();
      }
    }
  };
  visit(request, false);
  return links;
}

function isModelOutput(item: object): boolean {
  const { type } = item as { readonly type?: unknown };
  return typeof type === 'string' && modelOutput.test(type);
}

function pathOf(path: readonly string[], key: string, isList: boolean): string {
  return `${path.join('')}${isList ? `[${key}]` : `.${key}`}`.slice(1);
}

/** Whether vendors may be given this kind of link: a web link or a data URL. */
export function isMediaLink(url: string): boolean {
  return /^(?:https?:\/\/|data:)/i.test(url);
}

/** Whether it is a web link. */
export function isWebLink(url: string): boolean {
  return /^https?:/i.test(url);
}
