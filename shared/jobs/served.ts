/** Who serves an answer. */
export interface Served {
  /** The vendor that was called last. */
  readonly vendor: string;
  /** Calls of vendors that it took. */
  readonly calls: number;
  /** The model that stands in for the one that was asked for; undefined: none does. */
  readonly model: string | undefined;
}

/** As it stands at the head of a batch (see frames.ts): words without spaces, so that the head stays one line. */
export function servedText({ vendor, calls, model }: Served): string {
  return `${encodeURIComponent(vendor)} ${calls}${model === undefined ? '' : ` ${encodeURIComponent(model)}`}`;
}

/** Reads it; undefined for '': no vendor was called. */
export function readServed(text: string): Served | undefined {
  const [vendor = '', calls, model] = text.split(' ');
  if (vendor === '') return undefined;
  return {
    vendor: decodeURIComponent(vendor),
    calls: Number(calls),
    model: model === undefined ? undefined : decodeURIComponent(model),
  };
}
