/** Who serves an answer. */
export interface Served {
  /** The vendor that was called last. */
  readonly vendor: string;
  /** Number of vendor calls so far. */
  readonly calls: number;
  /** The model that replaces the requested one; undefined if none does. */
  readonly model: string | undefined;
  /** The answer's cost in nano-dollars, set at its end if known by then. */
  readonly cost?: number | undefined;
}

/** Serializes for the head of a batch (see frames.ts): tokens without spaces, so that the head stays one line. */
export function servedText({ vendor, calls, model, cost }: Served): string {
  const servedModel = model === undefined ? '' : encodeURIComponent(model);
  const rest = cost === undefined ? servedModel : `${servedModel} ${cost}`;
  return `${encodeURIComponent(vendor)} ${calls}${rest === '' ? '' : ` ${rest}`}`;
}

/** Adds the answer's cost to the text. '' stays: no vendor was called. */
export function withCost(text: string, cost: number | undefined): string {
  if (cost === undefined || text === '') return text;
  const hasModel = text.split(' ').length > 2;
  return `${text}${hasModel ? '' : ' '} ${cost}`;
}

/** Parses `servedText`; undefined for '': no vendor was called. */
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
