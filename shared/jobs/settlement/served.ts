/** Who serves an answer. */
export interface Served {
  /** The vendor that was called last. */
  readonly vendor: string;
  /** Calls of vendors that it took. */
  readonly calls: number;
  /** The model that stands in for the one that was asked for; undefined: none does. */
  readonly model: string | undefined;
  /** What the answer has cost, in nano-dollars: its end tells it, where it is known by then. */
  readonly cost?: number | undefined;
}

/** As it stands at the head of a batch (see frames.ts): words without spaces, so that the head stays one line. */
export function servedText({ vendor, calls, model, cost }: Served): string {
  const stand = model === undefined ? '' : encodeURIComponent(model);
  const told = cost === undefined ? stand : `${stand} ${cost}`;
  return `${encodeURIComponent(vendor)} ${calls}${told === '' ? '' : ` ${told}`}`;
}

/** The same text with what the answer has cost. '' stays: no vendor was called. */
export function withCost(text: string, cost: number | undefined): string {
  if (cost === undefined || text === '') return text;
  const hasModel = text.split(' ').length > 2;
  return `${text}${hasModel ? '' : ' '} ${cost}`;
}

/** Reads it; undefined for '': no vendor was called. */
export function readServed(text: string): Served | undefined {
  const [vendor = '', calls, model, cost] = text.split(' ');
  if (vendor === '') return undefined;
  return {
    vendor: decodeURIComponent(vendor),
    calls: Number(calls),
    model: model ? decodeURIComponent(model) : undefined,
    cost: cost ? Number(cost) : undefined,
  };
}
