import { type ErrorCode, errorTable } from '../../shared/errors.ts';
import type { WireRequest } from './requests.ts';
import type { FuzzAnswer } from './send.ts';

/** Codes that vendors, the sandbox among them, give to what they refuse: shown in place of ours, with their statuses. */
const vendorStatuses = new Set([400, 404, 413, 415, 422, 429]);

/** What an error of Anthropic's may be of. */
const anthropicTypes =
  /^(invalid_request|authentication|permission|not_found|request_too_large|rate_limit|api|overloaded|billing|timeout)_error$|^request_too_large$/;

/** Why an answer is a failure of the gateway's; undefined where it is none. */
export function complaintOf(wire: WireRequest, answer: FuzzAnswer): string | undefined {
  const { status, why, text, isWhole, headers } = answer;
  if (status === undefined) return why.startsWith('not sent') ? undefined : `no answer: ${why}`;
  if (!isWhole) return `an answer with ${status} ${why || 'broke off'}`;
  const type = String(headers['content-type'] ?? '');
  if (status >= 400) return wire.method === 'HEAD' ? complaintOfStatus(status) : complaintOfError(wire, answer);
  if (wire.method === 'HEAD') return undefined;
  if (type.startsWith('text/event-stream')) return complaintOfStream(wire, text);
  if (type.startsWith('application/json')) return complaintOfBody(text);
  return undefined;
}

function complaintOfStatus(status: number): string | undefined {
  return status === 500 ? 'status 500' : undefined;
}

function complaintOfError(wire: WireRequest, { status = 0, text }: FuzzAnswer): string | undefined {
  // Node's own, before any of the gateway's code: what is no HTTP.
  if (status === 400 && text === '') return undefined;
  // Of the board of the queues, and of health checks: no API.
  if (/^\/(console\/queues|readyz|health\/readiness)/.test(wire.path)) return complaintOfStatus(status);
  let body: { type?: unknown; error?: { type?: unknown; message?: unknown; code?: unknown } };
  try {
    body = JSON.parse(text);
  } catch {
    return `status ${status} and no JSON: ${text.slice(0, 80)}`;
  }
  const { error } = body;
  if (typeof error?.message !== 'string' || typeof error.type !== 'string') return `status ${status} without its shape`;
  if (body.type === 'error') {
    if (!anthropicTypes.test(error.type)) return `status ${status} of the type ${error.type}`;
    return status === 500 ? `500: ${error.message}` : undefined;
  }
  const { code } = error;
  if (typeof code !== 'string') return `status ${status} without a code`;
  // Sign-in has codes of its own.
  if (wire.path.startsWith('/console/api/auth') && status < 500) return undefined;
  if (!Object.hasOwn(errorTable, code)) return vendorStatuses.has(status) ? undefined : `status ${status} with ${code}`;
  if (errorTable[code as ErrorCode].status !== status) return `status ${status} with ${code}`;
  return status === 500 ? `500 ${code}: ${error.message}` : undefined;
}

/** Errors inside a stream: the gateway's own failures are as bad there. */
function complaintOfStream({ headers }: WireRequest, text: string): string | undefined {
  // Who has had the last event is told no more.
  const isResumed = Object.keys(headers).some((name) => name.toLowerCase() === 'last-event-id');
  if (text.trim() === '') return isResumed ? undefined : 'a stream without an event';
  const found = /"code":\s*"(server_error|stream_interrupted|outcome_unknown)"[^\n]{0,200}/.exec(text);
  return found === null ? undefined : `in a stream: ${found[0].slice(0, 160)}`;
}

function complaintOfBody(text: string): string | undefined {
  try {
    JSON.parse(text);
    return undefined;
  } catch {
    return `a body that is no JSON: ${text.slice(0, 80)}`;
  }
}

const lastTypes = new Set([
  'response.completed',
  'response.failed',
  'response.incomplete',
  'error',
  'response.cancelled',
]);

/** What an event of a response socket says of the gateway, and whether it is the last of its turn. */
export function complaintOfEvent(text: string): { isLast: boolean; complaint: string | undefined } {
  let event: {
    type?: string;
    status?: number;
    error?: { code?: string; message?: string };
    response?: { error?: { code?: string; message?: string } | null };
  };
  try {
    event = JSON.parse(text);
  } catch {
    return { isLast: true, complaint: `an event that is no JSON: ${text.slice(0, 80)}` };
  }
  const error = event.error ?? event.response?.error ?? undefined;
  const isOurs = event.status === 500 || error?.code === 'server_error';
  const complaint = isOurs ? `an event ${event.type} with ${error?.code}: ${error?.message}` : undefined;
  return { isLast: lastTypes.has(event.type ?? ''), complaint };
}
