import { z } from 'zod';

export const seconds = z.int().describe('Seconds since 1970.');
export const ms = z.int().describe('Milliseconds since 1970.');
export const dollars = z.number().describe('US dollars.');
export const tokens = z.int().nullable();
export const status = z.enum(['queued', 'in_progress', 'completed', 'failed', 'cancelled']);
export const metadata = z.record(z.string(), z.string()).nullable().describe("The request's `metadata`.");

/** A page in OpenAI's format of lists. */
export const page = <Item extends z.ZodType>(item: Item) =>
  z.object({
    object: z.literal('list'),
    data: z.array(item),
    first_id: z.string().nullable(),
    last_id: z.string().nullable().describe('What `after` takes for the next page.'),
    has_more: z.boolean(),
  });
/** A page in the format of the console and of operators. */
export const consolePage = <Item extends z.ZodType>(item: Item) =>
  z.object({
    object: z.literal('list'),
    data: z.array(item),
    has_more: z.boolean(),
    next: z.string().nullable().describe('What `after` takes for the next page; null on the last one.'),
  });
