import type { RoutedModel } from '../../shared/catalogue/catalogue.ts';
import { ApiError } from '../../shared/errors.ts';
import type { FrameSink, Vendor, VendorAnswer, VendorCall, VendorMethod } from '../vendors/vendor.ts';

/** A job on its way to its vendor. */
export interface Execution {
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
  /** Why this claim learned nothing, for the operator. */
  readonly error?: ApiError;
}

/** Does what a job asks for, by one or several calls of its vendor. @throws ApiError what the job ends with. */
export type Execute = (execution: Execution) => Promise<VendorAnswer>;

/** Does, or begins as a task of the vendor's, what a job asks for. @throws ApiError what the job ends with. */
export type ExecuteTask = (
  execution: Execution & { readonly rememberTask: RememberTask },
) => Promise<VendorAnswer | Pause>;

type MethodName = Exclude<keyof Vendor, 'name' | 'close' | 'video' | 'checkKey'>;

/** What the methods of a vendor do, in words that a caller understands. */
const offerings: Readonly<Record<MethodName | 'video', string>> = {
  chat: 'chat completions',
  countTokens: 'token counts',
  complete: 'legacy completions',
  embed: 'embeddings',
  image: 'images',
  transcribe: 'transcriptions',
  speak: 'speech',
  respond: 'responses',
  video: 'videos',
};

/** The error of a request for what a vendor does not offer: of a model that is not in the catalogue nobody knows that before. */
export function notOffered({ name: vendor }: Pick<Vendor, 'name'>, offering: MethodName | 'video'): ApiError {
  const message = `The vendor of this model, ${vendor}, does not offer ${offerings[offering]}.`;
  return new ApiError('invalid_request_error', message, { param: 'model' });
}

/** @throws ApiError 400 when the vendor does not offer it. */
export function methodOf(vendor: Vendor, name: MethodName): VendorMethod {
  const method = vendor[name];
  if (method === undefined) throw notOffered(vendor, name);
  return method;
}
