import assert from 'node:assert/strict';

/** One metric of a Prometheus page. */
export interface PageMetric {
  readonly name: string;
  readonly type: string;
  readonly help: string;
  /** Names of the labels that its samples have, without those of the process and of histograms. */
  readonly labels: ReadonlySet<string>;
}

/** A page of metrics, as a process serves it. */
export class MetricsPage {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }

  static async read(url: string): Promise<MetricsPage> {
    const response = await fetch(`${url}/metrics`);
    assert.equal(response.status, 200);
    return new MetricsPage(await response.text());
  }

  /** The gateway's own metrics; those that prom-client makes for every process are left out. */
  get metrics(): PageMetric[] {
    const types = new Map([...this.text.matchAll(/^# TYPE (\S+) (\S+)$/gm)].map(([, name, type]) => [name, type]));
    return [...this.text.matchAll(/^# HELP (sluice_\w+) (.*)$/gm)].map(([, name = '', help = '']) => ({
      ...{ name, help, type: types.get(name) ?? '' },
      labels: new Set(this.#labelsOf(name)),
    }));
  }

  /** The sum of all samples of this name whose labels are among others as given, such as `verdict="admitted"`. */
  sum(name: string, ...labels: readonly string[]): number {
    return this.#samples(name)
      .filter((sample) => labels.every((label) => sample.labels.includes(label)))
      .reduce((sum, { value }) => sum + value, 0);
  }

  /** The values of one label over all samples of this name. */
  values(name: string, label: string): string[] {
    const found = this.#samples(name).flatMap(({ labels }) => labels.filter((text) => text.startsWith(`${label}="`)));
    return [...new Set(found.map((text) => text.slice(label.length + 2, -1)))];
  }

  #samples(name: string): { readonly labels: readonly string[]; readonly value: number }[] {
    const lines = this.text.matchAll(new RegExp(`^${name}(?:\\{([^}]*)\\})? (\\S+)$`, 'gm'));
    return [...lines].map(([, labels = '', value]) => ({
      labels: labels.match(/\w+="(?:[^"\\]|\\.)*"/g) ?? [],
      value: Number(value),
    }));
  }

  #labelsOf(name: string): string[] {
    const ofProcess = new Set(['role', 'le']);
    return [name, `${name}_count`]
      .flatMap((full) =>
        this.#samples(full).flatMap(({ labels }) => labels.map((text) => text.split('=')[0] as string)),
      )
      .filter((label) => !ofProcess.has(label));
  }
}
