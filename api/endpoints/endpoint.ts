import type { Capability } from '../../shared/capabilities/capability.ts';
import type { Frame } from '../../shared/jobs/frames.ts';
import type { LargeBodyEndpoint } from '../large-bodies.ts';
import type { Prepare } from './prepared-request.ts';

/** What a view may know of the job whose frames it shows. */
export interface ViewedJob {
  readonly id: string;
  readonly model: string;
  /** Milliseconds since 1970. */
  readonly createdAt: number;
  /** What `prepare` put there. */
  readonly viewOptions: Record<string, unknown>;
}

/**
 * How an endpoint shows the frames of a job. Pure: the same frames from the first on always make the same events, so that
 * a resumed stream continues with exactly the events that are missing.
 */
export interface View {
  /** A new fold over the job's frames: for each frame the SSE events it becomes, each without its `id:` line and end. */
  stream(job: ViewedJob): (frame: Frame) => string[];
  /** The body of a held answer, from all frames of a job that ended well. */
  held(job: ViewedJob, frames: readonly Frame[]): string;
}

/** An endpoint that makes jobs: wire request → job, frames → wire. Everything else is the one handler's. */
export interface Endpoint {
  /** Stable name: it is stored with the job and finds its view again. */
  readonly name: LargeBodyEndpoint;
  readonly path: string;
  readonly capability: Capability;
  readonly prepare: Prepare;
  readonly view: View;
}
