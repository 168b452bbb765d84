import type { CaseName } from '../case-name.ts';
import type { Child } from '../children.ts';

/** Something that answers OpenAI's API, under load. */
export interface Target {
  name: string;
  /** `http://127.0.0.1:<port>`: its routes are OpenAI's, `/v1/…`. */
  origin: string;
  headers: Record<string, string>;
  /** Its processes, by role; their CPU and memory are the target's. */
  processes: readonly Pick<Child, 'name' | 'pid'>[];
  /** Ends everything that was started for it. */
  close(): Promise<void>;
}

export interface TargetOptions {
  vendor: Child;
  /** `http://127.0.0.1:<port>` of the minimal vendor. */
  vendorOrigin: string;
  /** An empty folder for logs and data. */
  directory: string;
  /** How many requests it must be able to have under way at once, where that is more than a default allows. */
  concurrency?: number;
  /** Where CPU profiles go, when they are wanted. */
  profileDirectory?: string;
}

/** One kind of target: starts it and resolves once it answers; throws with a sentence that says why it does not. */
export interface TargetKind {
  name: string;
  /** What it consists of, with its version, for the heading of the results. */
  description: string;
  /** Cases whose requests it cannot serve; it is measured in the others. */
  unsupportedCases?: readonly CaseName[];
  start(options: TargetOptions): Promise<Target>;
}

/** A target that cannot be installed on this machine: it is left out, and the run does not fail because of it. */
export class NotInstallable extends Error {}
