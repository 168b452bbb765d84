import type { RoutedModel } from '../../shared/catalogue/catalogue.ts';
import { ApiError } from '../../shared/errors.ts';
import type { QueuedJob } from '../../shared/queue/queue.ts';
import type { CallPart } from '../routing/call-parts.ts';
import { type RequestBody, requestText } from '../vendors/request-body.ts';
import type {
  AnswerBody,
  AnsweredCall,
  FrameSink,
  JobAnswer,
  OpenAnswer,
  Vendor,
  VendorAnswer,
  VendorCall,
  VendorUsage,
} from '../vendors/vendor.ts';

/** A job to be executed by its vendor. */
export interface Execution {
  readonly vendor: Vendor;
  /** The model, by the chosen route. */
  readonly row: RoutedModel;
  /** Name of the endpoint that created the job. */
  readonly endpoint: string;
  /** Whether the answer stays readable after its delivery: its files are then stored. */
  readonly keep: boolean;
  /** Whether fields that the vendor rejects are removed. */
  readonly dropsUnsupported?: boolean;
  readonly call: VendorCall;
  /** Makes each of its calls, if it may take several; left out: none is repeated. */
  readonly part?: CallPart | undefined;
  readonly sink: FrameSink;
}

/** The endpoints whose jobs may take several calls on one route. */
export const endpointsOfSeveralCalls: ReadonlySet<string> = new Set(['embeddings', 'completions']);

/** Makes a call that is not repeated. */
export const callOnce: CallPart = (call) => call();

/** What the vendor of a job of several calls was sent, and has answered. */
export interface SentCalls extends OpenAnswer {
  readonly inputsSent: Set<number>;
  readonly answered: AnsweredCall[];
}

/** Counts the inputs that the vendor of a job of several calls is sent: if the job is cut off, it is charged for no others. */
export function countSent({ run }: VendorCall): SentCalls {
  const open: SentCalls = { inputsSent: new Set(), answered: [], usageSoFar: () => null };
  if (run) run.openAnswer = open;
  return open;
}

/** One of several calls. */
interface SentPart {
  /** The indexes of its inputs. */
  readonly inputs: readonly number[];
  /** Ends it: if it does, the vendor was at work. */
  readonly signal: AbortSignal;
  /** Whether a part of its answer was passed on; left out: none is before its end. */
  readonly hasOutput?: () => boolean;
}

/**
 * Counts the inputs of a call as sent once it is made, which may be later, but not while it has failed, and may wait to be repeated.
 * Keeps its usage.
 */
export function asSent<Answer extends { readonly usage: VendorUsage }>(
  open: SentCalls,
  { inputs, signal, hasOutput = () => false }: SentPart,
  call: () => Promise<Answer>,
): () => Promise<Answer> {
  return async () => {
    for (const index of inputs) open.inputsSent.add(index);
    try {
      const answer = await call();
      open.answered.push({ usage: answer.usage, inputs });
      return answer;
    } catch (error) {
      if (!signal.aborted && !hasOutput()) for (const index of inputs) open.inputsSent.delete(index);
      throw error;
    }
  };
}

/** Stores a task by its vendor's name for it. @throws ApiError when the job has ended meanwhile: the task is discarded. */
export type RememberTask = (name: string) => Promise<void>;

/** A job whose vendor's task is not finished: it returns to its queue. */
export interface Pause {
  /** Percent, a whole number. */
  readonly progress: number;
  readonly pauseMs: number;
  /** Why this claim learned nothing, for the operator. */
  readonly error?: ApiError;
}

/** Executes a job by one or several calls of its vendor. @throws ApiError that the job ends with. */
export type Execute<Body extends AnswerBody = string> = (execution: Execution) => Promise<VendorAnswer<Body>>;

/** Executes a job, or starts it as a task of the vendor. @throws ApiError that the job ends with. */
export type ExecuteTask = (
  execution: Execution & { readonly rememberTask: RememberTask },
) => Promise<JobAnswer | Pause>;

type MethodName = Exclude<keyof Vendor, 'name' | 'close' | 'video' | 'checkKey'>;

/** Display names of the methods of a vendor, for error messages. */
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

/** The error for a method that a vendor does not offer: for models outside the catalogue that is not known earlier. */
export function notOffered({ name: vendor }: Pick<Vendor, 'name'>, offering: MethodName | 'video'): ApiError {
  const message = `The vendor of this model, ${vendor}, does not offer ${offerings[offering]}.`;
  return new ApiError('invalid_request_error', message, { param: 'model' });
}

/** @throws ApiError 400 when the vendor does not offer it. */
export function methodOf<Name extends MethodName>(vendor: Vendor, name: Name): NonNullable<Vendor[Name]> {
  const method = vendor[name];
  if (method === undefined) throw notOffered(vendor, name);
  return method;
}

/** The limit's name in the request of each endpoint that has one; the vendor's adapter translates it. */
const limitNames: Readonly<Record<string, string>> = {
  chat: 'max_completion_tokens',
  completions: 'max_tokens',
  responses: 'max_output_tokens',
};

/** OpenAI refuses a response with a lower limit. Only the gateway pays for the tokens over the limit. */
const minOfResponse = 16;

/**
 * Adds the limit that the gateway sets to the request, as if the caller had set it. It goes behind the last field: a request may
 * be megabytes, and some of its fields must be the first. A null from the caller comes earlier, and so is overridden.
 */
export function withOutputLimit(
  request: RequestBody,
  { endpoint, outputLimit }: Pick<QueuedJob, 'endpoint' | 'outputLimit'>,
): RequestBody {
  const name = Object.hasOwn(limitNames, endpoint) ? limitNames[endpoint] : undefined;
  if (outputLimit === undefined || name === undefined) return request;
  const limit = endpoint === 'responses' ? Math.max(minOfResponse, outputLimit) : outputLimit;
  const text = requestText(request);
  const fields = text.slice(0, text.lastIndexOf('}')).trimEnd();
  return `${fields}${fields.endsWith('{') ? '' : ','}"${name}":${limit}}`;
}
