import type { RoutedModel } from '../../shared/catalogue/catalogue.ts';
import { ApiError } from '../../shared/errors.ts';
import type { FrameSink, Vendor, VendorAnswer, VendorCall, VendorMethod } from '../vendors/vendor.ts';

/** A job on its way to its vendor. */
export interface Performance {
  readonly vendor: Vendor;
  /** The model, by the route that is taken. */
  readonly row: RoutedModel;
  /** Name of the endpoint that made the job. */
  readonly endpoint: string;
  /** Whether the answer stays readable after its delivery: files that it is made of are then stored. */
  readonly keep: boolean;
  /** Whether fields that the vendor refuses are left out. */
  readonly dropsUnsupported?: boolean;
  readonly call: VendorCall;
  readonly sink: FrameSink;
}

/** Stores a task by its vendor's name for it. @throws ApiError when the job is over meanwhile: the task is discarded. */
export type RememberTask = (name: string) => Promise<void>;

/** A job whose vendor's task is not done: it comes back. */
export interface Pause {
  /** Percent, a whole number. */
  readonly progress: number;
  readonly pauseMs: number;
  /** Why this taking learned nothing, for the operator. */
  readonly error?: ApiError;
}

/** Does what a job asks for, by one or several calls of its vendor. @throws ApiError what the job ends with. */
export type Perform = (performance: Performance) => Promise<VendorAnswer>;

/** Does, or begins as a task of the vendor's, what a job asks for. @throws ApiError what the job ends with. */
export type PerformTask = (
  performance: Performance & { readonly rememberTask: RememberTask },
) => Promise<VendorAnswer | Pause>;

type MethodName = Exclude<keyof Vendor, 'name' | 'close' | 'video'>;

/** @throws ApiError when the vendor does not offer it, which the catalogue should not have let come so far. */
export function methodOf(vendor: Vendor, name: MethodName): VendorMethod {
  const method = vendor[name];
  if (method === undefined) throw new ApiError('server_error', `The model's vendor does not offer "${name}".`);
  return method;
}
