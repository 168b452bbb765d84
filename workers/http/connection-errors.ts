import { ApiError } from '../../shared/errors.ts';

/** An error as Node and undici make it. */
export type ConnectionError = Error & { code?: string };

/** No connection could be made: nothing was sent. */
export class UnreachableError extends ApiError {}

/** This machine or process makes no connection for now, which says nothing about the vendor. */
export class NoConnectionError extends UnreachableError {}

/** The connection was lost or fell silent after the request was sent: what the vendor did with it is unknown. */
export class LostAnswerError extends ApiError {}

/** Why this machine or process makes none, by the code of the error, and what to do. */
const shortages: Readonly<Record<string, string>> = {
  EMFILE: 'this process has no file descriptors left: raise its limit (ulimit -n)',
  ENFILE: 'this machine has no file descriptors left: raise fs.file-max',
  EADDRNOTAVAIL: 'this machine has no local ports left for that address',
  ENOBUFS: 'this machine has no memory left for connections',
};

/** A call whose connection failed. */
interface FailedCall {
  readonly vendor: string;
  /** Whether its request was sent. */
  readonly isSent: boolean;
  readonly silenceMs: number;
}

/** The error of a call whose connection failed. */
export function connectionFailed(
  { code, message }: ConnectionError,
  { vendor, isSent, silenceMs }: FailedCall,
): ApiError {
  // Not the error itself: undici's contain parts of the answer.
  const cause = new Error(`${vendor}: ${message}${code === undefined ? '' : ` (${code})`}`);
  const shortage = shortages[code ?? ''];
  if (!isSent && shortage !== undefined) {
    const text = "The gateway has no connection left to the model's vendor. Try again later.";
    return new NoConnectionError('service_unavailable', text, { cause: new Error(`${vendor}: ${shortage} (${code})`) });
  }
  if (!isSent) return new UnreachableError('service_unavailable', "The model's vendor cannot be reached.", { cause });
  if (code === 'UND_ERR_HEADERS_TIMEOUT' || code === 'UND_ERR_BODY_TIMEOUT') return wasSilent(silenceMs, cause);
  return new LostAnswerError('server_error', "The connection to the model's vendor broke off.", { cause });
}

/** The error of a call whose vendor has sent nothing for so long. */
export function wasSilent(ms: number, cause?: Error): ApiError {
  return new LostAnswerError('timeout', `The model's vendor was silent for ${ms} ms.`, cause && { cause });
}
