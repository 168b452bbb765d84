/** A policy of a HorizontalPodAutoscaler: how much may change within a time. */
interface Policy {
  readonly type: 'Percent' | 'Pods';
  readonly value: number;
  readonly periodSeconds: number;
}

interface Rules {
  readonly stabilizationWindowSeconds: number;
  readonly policies: readonly Policy[];
}

/** The part of a ScaledObject that decides, as the chart renders it. */
export interface ScaledObjectSpec {
  readonly minReplicaCount: number;
  readonly maxReplicaCount: number;
  readonly cooldownPeriod: number;
  readonly triggers: readonly {
    readonly name: string;
    readonly metadata: { readonly query: string; readonly threshold: string; readonly activationThreshold: string };
  }[];
  readonly advanced: {
    readonly horizontalPodAutoscalerConfig: {
      readonly behavior: { readonly scaleUp: Rules; readonly scaleDown: Rules };
    };
  };
}

/** Differences from the target that a HorizontalPodAutoscaler overlooks. */
const tolerance = 0.1;

/**
 * KEDA with the HorizontalPodAutoscaler that it makes, as their documents describe them: KEDA decides between none and one, the
 * other between one and all. Times are seconds of a clock that the caller reads.
 * https://keda.sh/docs/2.17/concepts/scaling-deployments/
 * https://kubernetes.io/docs/tasks/run-application/horizontal-pod-autoscale/#algorithm-details
 */
export class Autoscaler {
  readonly #spec: ScaledObjectSpec;
  #replicas: number;
  #activeAt: number;
  #recommended: { readonly at: number; readonly replicas: number }[] = [];
  #changes: { readonly at: number; readonly by: number }[] = [];

  constructor(spec: ScaledObjectSpec, now: number) {
    this.#spec = spec;
    this.#replicas = spec.minReplicaCount;
    this.#activeAt = now;
  }

  /** The number of pods that are wanted. */
  get replicas(): number {
    return this.#replicas;
  }

  /** KEDA's check, each `pollingInterval`. @param values of the triggers, in their order */
  activate(now: number, values: readonly number[]): void {
    const isActive = values.some((value, index) => value > Number(this.#trigger(index).activationThreshold));
    if (isActive) this.#activeAt = now;
    if (isActive && this.#replicas === 0) this.#replicas = 1;
    const { minReplicaCount, cooldownPeriod } = this.#spec;
    if (minReplicaCount > 0 || this.#replicas === 0 || now - this.#activeAt < cooldownPeriod) return;
    this.#replicas = 0;
    this.#recommended = [];
    this.#changes = [];
  }

  /** The HorizontalPodAutoscaler's check, each 15 s. @param values of the triggers, in their order */
  adjust(now: number, values: readonly number[]): void {
    if (this.#replicas === 0) return;
    const wanted = Math.max(
      ...values.map((value, index) => this.#wantedFor(value, Number(this.#trigger(index).threshold))),
    );
    const { minReplicaCount: min, maxReplicaCount: max } = this.#spec;
    const next = this.#limited(now, this.#stabilized(now, wanted));
    const bounded = Math.min(Math.max(next, min, 1), max);
    if (bounded !== this.#replicas) this.#changes.push({ at: now, by: bounded - this.#replicas });
    this.#replicas = bounded;
  }

  #trigger(index: number): ScaledObjectSpec['triggers'][number]['metadata'] {
    return (this.#spec.triggers[index] as ScaledObjectSpec['triggers'][number]).metadata;
  }

  #wantedFor(value: number, threshold: number): number {
    const use = value / (threshold * this.#replicas);
    return Math.abs(use - 1) <= tolerance ? this.#replicas : Math.ceil(value / threshold);
  }

  /** The most that was wanted within the window of scaling down. That of scaling up is 0 here. */
  #stabilized(now: number, wanted: number): number {
    const window = this.#spec.advanced.horizontalPodAutoscalerConfig.behavior.scaleDown.stabilizationWindowSeconds;
    this.#recommended = [...this.#recommended.filter(({ at }) => now - at < window), { at: now, replicas: wanted }];
    return Math.max(...this.#recommended.map(({ replicas }) => replicas));
  }

  /** As far towards it as the policies allow: the one that allows most. */
  #limited(now: number, wanted: number): number {
    const { scaleUp, scaleDown } = this.#spec.advanced.horizontalPodAutoscalerConfig.behavior;
    const isUp = wanted > this.#replicas;
    const sign = isUp ? 1 : -1;
    const bounds = (isUp ? scaleUp : scaleDown).policies.map(({ type, value, periodSeconds }) => {
      const done = this.#changes.filter(({ at, by }) => now - at < periodSeconds && by * sign > 0);
      const before = this.#replicas - done.reduce((sum, { by }) => sum + by, 0);
      if (type === 'Pods') return before + sign * value;
      const share = before * (1 + (sign * value) / 100);
      return isUp ? Math.ceil(share) : Math.floor(share);
    });
    return isUp ? Math.min(wanted, Math.max(...bounds)) : Math.max(wanted, Math.min(...bounds));
  }
}
