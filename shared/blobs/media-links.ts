/** A step on the way to a value: a key of an object, or an index of a list. */
interface Step {
  readonly before: Step | undefined;
  readonly key: string;
  readonly isIndex: boolean;
}

/** A link to media in a request. */
export interface MediaLink {
  /** The object or list that contains it under `key`. */
  readonly holder: Record<string, unknown>;
  readonly key: string;
  readonly url: string;
  /** What `linkPath` reads. Its text is made for few links only: a request may have a million, below keys of megabytes. */
  readonly at: Step;
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
  const visit = (value: object, before: Step | undefined, isLinkList: boolean): void => {
    const isList = Array.isArray(value);
    for (const key of Object.keys(value)) {
      const child = (value as Record<string, unknown>)[key];
      if (child === null || (before === undefined && withoutMedia.has(key))) continue;
      const isLink = isList ? isLinkList : linkKey.test(key);
      if (typeof child === 'string') {
        if (isLink && child !== '') {
          const at = { before, key, isIndex: isList };
          links.push({ holder: value as Record<string, unknown>, key, url: child, at });
        }
      } else if (typeof child === 'object' && !(isList ? isModelOutput(child as object) : key === 'annotations')) {
        visit(child as object, { before, key, isIndex: isList }, isLink);
      }
    }
  };
  visit(request, undefined, false);
  return links;
}

/** The path of a link: `messages[0].content[1].image_url.url`. */
export function linkPath({ at }: Pick<MediaLink, 'at'>): string {
  const steps: string[] = [];
  for (let step: Step | undefined = at; step !== undefined; step = step.before) {
    const { key, isIndex } = step;
    steps.push(isIndex ? `[${key}]` : `.${key}`);
  }
  return steps.reverse().join('').slice(1);
}

function isModelOutput(item: object): boolean {
  const { type } = item as { readonly type?: unknown };
  return typeof type === 'string' && modelOutput.test(type);
}

/** Whether vendors may be given this kind of link: a web link or a data URL. */
export function isMediaLink(url: string): boolean {
  return /^(?:https?:\/\/|data:)/i.test(url);
}

/** Whether it is a web link. */
export function isWebLink(url: string): boolean {
  return /^https?:/i.test(url);
}
