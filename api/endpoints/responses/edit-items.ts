import { ownItemId, type ResponseItem } from '../../../shared/capabilities/response.ts';
import { ApiError } from '../../../shared/errors.ts';
import { largestBody } from '../../http/body/read-body.ts';
import type { PageQuery } from '../../http/page.ts';
import { shownId } from '../../pipeline/missing.ts';
import { joinedMedia, type MediaExtent } from '../../pipeline/request-extent.ts';
import { invalidParameter } from '../../pipeline/request-fields.ts';

/** A referenced item. */
export interface NamedItem {
  /** JSON. */
  readonly text: string;
  readonly media: MediaExtent;
}

/** What is wanted of a list of items, which may be 20 MiB of JSON. */
export type ItemsTask =
  /** A page of a response's input items, and one more. */
  | { readonly select: 'page'; readonly jobId: string; readonly page: PageQuery }
  /** The input items of a response with these ids. */
  | { readonly select: 'named'; readonly jobId: string; readonly ids: readonly string[] }
  /** All items of a request, those that are named instead of their references. */
  | { readonly select: 'all'; readonly named: ReadonlyMap<string, NamedItem> };

/** A list of items. */
export interface EditedItems {
  /** JSON text of the list. */
  readonly text: string;
  /** The images and documents of items that were put in place of references. */
  readonly media: MediaExtent;
}

/**
 * Reads a list of items, JSON text. Long lists are read in the large bodies' thread: to parse them takes seconds.
 * @throws ApiError 400 that names the parameter at fault, 413 for items that are too long together.
 */
export function editItems(list: string, task: ItemsTask): EditedItems {
  const items = JSON.parse(list) as ResponseItem[];
  if (task.select === 'all') return replaceReferences(items, task.named);
  const named = withItemIds(items, task.jobId);
  return {
    text: JSON.stringify(task.select === 'page' ? itemsOfPage(named, task) : withIds(named, task)),
    media: undefined,
  };
}

function itemsOfPage(
  items: readonly ResponseItem[],
  { page: { limit, order, after } }: Extract<ItemsTask, { select: 'page' }>,
): readonly ResponseItem[] {
  const ordered = order === 'asc' ? items : items.toReversed();
  const from = after === undefined ? 0 : ordered.findIndex(({ id }) => id === after) + 1;
  if (after !== undefined && from === 0) {
    throw invalidParameter('after', `Item with id '${shownId(after)}' not found.`);
  }
  return ordered.slice(from, from + limit + 1);
}

function withIds(
  items: readonly ResponseItem[],
  { ids }: Extract<ItemsTask, { select: 'named' }>,
): readonly ResponseItem[] {
  const wanted = new Set<unknown>(ids);
  return items.filter(({ id }) => wanted.has(id));
}

/** Gives input items without an id their own, and those that repeat one: a page of a list begins after an id. */
function withItemIds(items: readonly ResponseItem[], jobId: string): ResponseItem[] {
  const prefixes: Readonly<Record<string, string>> = {
    function_call: 'fc',
    function_call_output: 'fco',
    reasoning: 'rs',
  };
  const seen = new Set<string>();
  return items.map((item, index) => {
    const { id } = item;
    if (id != null && !seen.has(id)) {
      seen.add(id);
      return item;
    }
    return { ...item, id: ownItemId(`${prefixes[item.type ?? ''] ?? 'msg'}_in${index}`, jobId) };
  });
}

function replaceReferences(items: readonly ResponseItem[], named: ReadonlyMap<string, NamedItem>): EditedItems {
  const texts: string[] = [];
  let length = 0;
  let media: MediaExtent;
  for (const [index, item] of items.entries()) {
    const reference = item.type === 'item_reference' ? named.get(String(item.id)) : undefined;
    const found = item.type === 'item_reference' ? reference?.text : JSON.stringify(item);
    if (found === undefined) {
      throw invalidParameter(`input[${index}].id`, `Item with id '${shownId(String(item.id))}' not found.`);
    }
    // A short reference may stand for a long item, repeatedly.
    length += found.length;
    if (length > largestBody) throw tooLong('input');
    texts.push(found);
    media = joinedMedia(media, reference?.media);
  }
  return { text: `[${texts.join(',')}]`, media };
}

/** A turn runs and is stored with all earlier items: together they have the size limit of a request. */
export function tooLong(param: string): ApiError {
  const limit = `${largestBody / 1024 / 1024} MiB`;
  const message = `With the earlier turns it names the request is too large: at most ${limit} are accepted.`;
  return new ApiError('request_too_large', message, { param });
}
