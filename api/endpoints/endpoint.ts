import type { Capability } from '../../shared/capabilities/capability.ts';
import type { Model } from '../../shared/catalogue/models.ts';
import type { Frame } from '../../shared/jobs/frames.ts';
import type { EndpointName } from './endpoint-name.ts';
import type { Prepare, PreparedRequest, PrepareForm } from './prepared-request.ts';

/** What a view may know of the job whose frames it shows. */
export interface ViewedJob {
  readonly id: string;
  readonly model: string;
  /** Milliseconds since 1970. */
  readonly createdAt: number;
  /** What `prepare` put there. */
  readonly viewOptions: Record<string, unknown>;
  /** A link under which anybody can fetch a result file (by the id of its blob) for a time. */
  readonly link: (file: string) => string;
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
  /** Content-Type of a held answer; JSON where it is left out. */
  contentType?(job: ViewedJob): string;
}

/** An endpoint that makes jobs: wire request → job, frames → wire. Everything else is the one handler's. */
export interface Endpoint {
  /** Stable name: it is stored with the job and finds its view again. */
  readonly name: EndpointName;
  readonly path: string;
  readonly capability: Capability;
  /** Reads a JSON body; left out where only a form is taken. */
  readonly prepare?: Prepare;
  /** Reads a form; left out where only JSON is taken. */
  readonly prepareForm?: PrepareForm;
  /** Holds the request against its model's row. @throws ApiError 400 that names the parameter at fault. */
  readonly check?: (request: Pick<PreparedRequest, 'stream' | 'traits'>, model: Model) => void;
  readonly view: View;
}
