import type { Model } from '../../shared/catalogue/models.ts';
import { ApiError } from '../../shared/errors.ts';
import type { FrameSink, Vendor, VendorAnswer, VendorCall, VendorMethod } from '../vendors/vendor.ts';

/** A job on its way to its vendor. */
export interface Performance {
  readonly vendor: Vendor;
  /** The model's row in the catalogue. */
  readonly row: Model;
  /** Name of the endpoint that made the job. */
  readonly endpoint: string;
  /** Whether the answer stays readable after its delivery: files that it is made of are then stored. */
  readonly keep: boolean;
  readonly call: VendorCall;
  readonly sink: FrameSink;
}

/** Does what a job asks for, by one or several calls of its vendor. @throws ApiError what the job ends with. */
export type Perform = (performance: Performance) => Promise<VendorAnswer>;

type MethodName = Exclude<keyof Vendor, 'name' | 'close' | 'video'>;

/** @throws ApiError when the vendor does not offer it, which the catalogue should not have let come so far. */
export function methodOf(vendor: Vendor, name: MethodName): VendorMethod {
  const method = vendor[name];
  if (method === undefined) throw new ApiError('server_error', `The model's vendor does not offer "${name}".`);
  return method;
}
