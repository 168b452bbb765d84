/** A link to media that a request holds. */
export interface MediaLink {
  /** The object or list that it stands in, by `key`. */
  readonly holder: Record<string, unknown>;
  readonly key: string;
  readonly url: string;
  /** Where that is: `messages[0].content[1].image_url.url`. */
  readonly path: string;
}

/** Fields that name media: `url`, `image_url`, `file_url`, `image_urls`, `uri`. */
const linkKey = /(?:^|_)ur[il]s?$/;

/** Fields of a request that hold no media, but may well say `url`: schemas, and what the caller says of the request. */
const withoutMedia: ReadonlySet<string> = new Set([
  ...['tools', 'functions', 'tool_choice', 'web_search_options', 'response_format', 'output_config', 'output_format'],
  ...['text', 'metadata'],
]);

/** Items and blocks that say what a model did or named, with arguments as it made them: nobody fetches what they name. */
const said = /(?:_call|^tool_use)$/;

/** Whether a request may hold a link at all: most do not, and need not be walked. Its keys must be written without escapes. */
export function mayHoldLink(request: string): boolean {
  return request.includes('url"') || request.includes('urls"') || request.includes('uri"');
}

/** Every link to media of a request, whichever endpoint it came by, as far as a vendor may fetch it. */
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
      } else if (typeof child === 'object' && !(isList ? hasSaid(child as object) : key === 'annotations')) {
        path.push(isList ? `[${key}]` : `.${key}`);
        visit(child as object, isLink);
        path.pop();
      }
    }
  };
  visit(request, false);
  return links;
}

function hasSaid(item: object): boolean {
  const { type } = item as { readonly type?: unknown };
  return typeof type === 'string' && said.test(type);
}

function pathOf(path: readonly string[], key: string, isList: boolean): string {
  return `${path.join('')}${isList ? `[${key}]` : `.${key}`}`.slice(1);
}

/** Whether a link is of a kind that vendors may be given: to the web, or the data itself. */
export function isMediaLink(url: string): boolean {
  return /^(?:https?:\/\/|data:)/i.test(url);
}

/** Whether it leads to the web. */
export function isWebLink(url: string): boolean {
  return /^https?:/i.test(url);
}
