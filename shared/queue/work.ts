/** Tokens of one unit of work. */
const unitTokens = 1000;
/** Nano-dollars of one unit of work, where work is not text: a cent. */
const unitCost = 10_000_000;
/** Expected tokens of an answer to which the request sets no limit. */
const usualOutputTokens = 500;

/** The least and the most that one job counts as, in units. */
const [least, most] = [0.01, 1000];

/**
 * Work of a job with a text for its request and its answer: how much it counts as among the jobs of its queue, of which each
 * account gets an equal share (see lines.lua). One unit is a thousand tokens.
 * @param inputTokens expected of the request
 * @param outputTokens maximum of the answers together; left out: no limit
 */
export function workOfText(inputTokens: number, outputTokens = usualOutputTokens): number {
  return bounded((inputTokens + outputTokens) / unitTokens);
}

/** Work of a job whose cost tells more of it than its text. @param cost its maximum in nano-dollars; 0 or undefined: unknown */
export function workOfCost(cost: number | undefined): number {
  return cost ? bounded(cost / unitCost) : 1;
}

function bounded(work: number): number {
  return Math.min(Math.max(Math.round(work * 100) / 100, least), most);
}
