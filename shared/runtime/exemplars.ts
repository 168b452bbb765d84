/** An observation of a histogram, and the trace that it belongs to. */
interface Exemplar {
  readonly traceId: string;
  readonly value: number;
  /** In seconds since 1970. */
  readonly at: number;
}

/** A sample of a histogram's bucket in the text format: its metric's name, its labels, its value. */
const bucketLine = /^(\w+)_bucket\{(.*)\} \S+$/;
const label = /(\w+)="((?:[^"\\]|\\.)*)"/g;
/** Labels that are not of the observation. */
const added: ReadonlySet<string> = new Set(['le', 'role']);
const header = /^# (?:HELP|TYPE) (\w+?)_total /;

/**
 * The last traced observation in each bucket of the histograms: there are as many as there are buckets. Written behind the buckets
 * in the OpenMetrics format, which alone has room for them.
 */
export class Exemplars {
  readonly #bounds: readonly number[];
  readonly #last = new Map<string, Exemplar>();

  /** @param bounds upper bounds of all histograms' buckets, ascending */
  constructor(bounds: readonly number[]) {
    this.#bounds = bounds;
  }

  /** Keeps a traced observation in place of the one before it in its bucket. */
  note(name: string, labels: Readonly<Record<string, unknown>>, value: number, traceId: string): void {
    const bound = this.#bounds.find((upper) => value <= upper) ?? '+Inf';
    const own = Object.entries(labels).map(([key, text]) => `${key}="${escaped(String(text))}"`);
    this.#last.set(keyOf(name, own, String(bound)), { traceId, value, at: Date.now() / 1000 });
  }

  /**
   * A page of metrics in the OpenMetrics format, with exemplars: https://prometheus.io/docs/specs/om/open_metrics_spec/.
   * @param text the same page in the Prometheus text format
   */
  toOpenMetrics(text: string): string {
    const counters = new Set([...text.matchAll(/^# TYPE (\w+) counter$/gm)].map(([, name]) => name as string));
    const lines: string[] = [];
    for (const line of text.split('\n')) {
      if (line === '') continue;
      const [, family] = header.exec(line) ?? [];
      // A counter's family has the name without the suffix of its samples.
      if (family !== undefined && counters.has(`${family}_total`)) lines.push(line.replace('_total ', ' '));
      else lines.push(line + this.#suffix(line));
    }
    return `${lines.join('\n')}\n# EOF\n`;
  }

  #suffix(line: string): string {
    const [, name, labels] = bucketLine.exec(line) ?? [];
    if (name === undefined || labels === undefined) return '';
    const all = [...labels.matchAll(label)];
    const bound = all.find(([, key]) => key === 'le')?.[2] ?? '';
    const own = all.filter(([, key]) => !added.has(key as string)).map(([pair]) => pair);
    const found = this.#last.get(keyOf(name, own, bound));
    if (found === undefined) return '';
    return ` # {trace_id="${found.traceId}"} ${found.value} ${found.at}`;
  }
}

function keyOf(name: string, labels: readonly string[], bound: string): string {
  return [name, bound, ...[...labels].sort()].join(' ');
}

function escaped(text: string): string {
  return text.replace(/\\/g, '\\\\').replace(/\n/g, '\\n').replace(/"/g, '\\"');
}
