import type { Middleware } from 'koa';
import { ApiError } from '../../../shared/errors.ts';
import { withTimeout } from '../../../shared/runtime/with-timeout.ts';
import { refuseForeignPage } from '../../http/foreign-page.ts';
import { networkOf } from '../../http/network-of.ts';
import { readFields } from '../../http/read-fields.ts';
import { setCookies } from '../../http/set-cookies.ts';
import type { ForwardedHeaders } from '../../http/trusted-proxies.ts';
import { methodNotAllowed } from '../../pipeline/missing.ts';
import type { Context, State } from '../../state.ts';
import type { AttemptLimits } from './attempt-limits.ts';
import { type AuthCall, authCalls } from './auth-calls.ts';
import { authError } from './auth-error.ts';
import { authPath, clientAddressHeader } from './auth-path.ts';
import type { KnownDevices } from './known-devices.ts';
import type { RequireSessionDependencies } from './require-session.ts';
import { signedIn } from './require-session.ts';
import { forgetPasswords, forgetSignIns, type SignInAttempt, takePassword, takeSignIn } from './sign-in-limits.ts';

/** Dependencies of the routes of better-auth. */
export interface AuthRouteDependencies extends RequireSessionDependencies {
  readonly attempts: AttemptLimits;
  readonly devices: KnownDevices;
  readonly forwarded: ForwardedHeaders;
}

/** How long a call may take, and one in whose course an identity provider is asked: its own times are not ours. */
const callMs = 15_000;
const providerMs = 30_000;

/**
 * `/console/api/auth/*`: sign-up, sign-in, passwords and sessions, handled by better-auth. Errors have the API's shape, with
 * better-auth's code in lower case.
 * @throws ApiError 403 for requests of another site's page, 429 for too many attempts.
 */
export function answerAuth(services: AuthRouteDependencies): Middleware<State> {
  return async (ctx) => {
    ctx.state.endpoint = 'console.auth';
    const path = ctx.path.slice(authPath.length);
    const call = Object.hasOwn(authCalls, path) ? authCalls[path] : undefined;
    if (call === undefined) throw new ApiError('not_found', `Unknown path: ${ctx.method} ${ctx.path}`);
    if (call.method !== ctx.method) {
      ctx.set('allow', call.method);
      throw methodNotAllowed(ctx.method, call.method);
    }
    refuseForeignPage(ctx, services);
    const fields = call.fields === undefined ? {} : await readFields(ctx, call.fields);
    const attempt = call.isSignIn ? signInOf(ctx, services, fields) : undefined;
    if (attempt !== undefined) await takeSignIn(services.attempts, attempt);
    await takeAttempt(ctx, services, path, call, fields);
    const user = call.asksPassword && (await signedIn(ctx, services)).userId;
    if (user !== undefined) await takePassword(services.attempts, user);
    if (call.end !== undefined) return await endSessions(ctx, services, call.end, fields);
    const request = requestOf(ctx, services, `${call.path ?? path}${call.hasQuery ? ctx.search : ''}`, fields, call);
    const hasLimit = call.isSignIn === true || call.perAddress !== undefined;
    const answer = await inTime(services.sessions.answer(services.baseUrls.of(ctx.req), request, hasLimit), call);
    if (answer.ok && attempt !== undefined) await forgetSignIns(services.attempts, attempt);
    if (answer.ok && user !== undefined) await forgetPasswords(services.attempts, user);
    await pass(ctx, services, answer, fields, call);
    if (call.answer !== undefined) ctx.body = call.answer;
  };
}

/** @throws ApiError 503, or 504 for a provider, when there is no answer in time. */
async function inTime(answering: Promise<Response>, { asksProvider }: AuthCall): Promise<Response> {
  const answer = await withTimeout(answering, asksProvider ? providerMs : callMs);
  if (answer !== undefined) return answer;
  if (asksProvider) throw new ApiError('timeout', 'The sign-in took too long. Try again.');
  throw new ApiError('service_unavailable', 'Users cannot be checked or changed for now. Try again later.', {
    ...{ reason: 'database', retryAfterMs: 2000 },
  });
}

async function endSessions(
  ctx: Context,
  services: AuthRouteDependencies,
  which: 'one' | 'others',
  fields: Readonly<Record<string, unknown>>,
): Promise<void> {
  const session = await signedIn(ctx, services);
  const sessions = which === 'one' ? { id: String(fields.id) } : { except: session.id };
  await services.sessions.end(session.userId, sessions);
  ctx.body = { status: true };
}

function signInOf(
  ctx: Context,
  { devices, forwarded }: AuthRouteDependencies,
  fields: Readonly<Record<string, unknown>>,
): SignInAttempt {
  const email = String(fields.email);
  return {
    email,
    network: networkOf(forwarded.clientAddress(ctx.req)),
    device: devices.find(ctx.get('cookie'), email),
  };
}

async function takeAttempt(
  ctx: Context,
  { attempts, forwarded }: AuthRouteDependencies,
  path: string,
  { perAddress, perEmail }: AuthCall,
  fields: Readonly<Record<string, unknown>>,
): Promise<void> {
  const network = networkOf(forwarded.clientAddress(ctx.req));
  if (perAddress !== undefined) await attempts.take(`${path} from ${network}`, perAddress);
  if (perEmail !== undefined) await attempts.take(`${path} for ${fields.email}`, perEmail);
}

/** Makes the request for better-auth: only the checked fields, and of the headers those that a session stores. */
function requestOf(
  ctx: Context,
  { baseUrls, forwarded }: AuthRouteDependencies,
  path: string,
  fields: Readonly<Record<string, unknown>>,
  { asQuery }: AuthCall,
): Request {
  const url = new URL(`${authPath}${path}`, baseUrls.of(ctx.req));
  const headers = new Headers({
    cookie: ctx.get('cookie'),
    'user-agent': ctx.get('user-agent').slice(0, 300),
    [clientAddressHeader]: forwarded.clientAddress(ctx.req),
  });
  if (asQuery) url.search = new URLSearchParams(fields as Record<string, string>).toString();
  if (asQuery || ctx.method === 'GET') return new Request(url, { headers });
  headers.set('content-type', 'application/json');
  return new Request(url, { method: 'POST', headers, body: JSON.stringify(fields) });
}

async function pass(
  ctx: Context,
  services: AuthRouteDependencies,
  answer: Response,
  sent: Readonly<Record<string, unknown>>,
  { asksProvider }: AuthCall,
): Promise<void> {
  setCookies(ctx, services, answer.headers.getSetCookie());
  const text = await answer.text();
  const location = answer.headers.get('location');
  if (answer.status >= 300 && answer.status < 400 && location !== null) {
    ctx.status = answer.status;
    ctx.set('location', location);
    ctx.body = '';
    return;
  }
  const body: unknown = text === '' ? null : JSON.parse(text);
  if (!answer.ok) throw authError(answer.status, body, sent, asksProvider ? undefined : 'database');
  rememberDevice(ctx, services, answer, body);
  ctx.status = answer.status;
  ctx.type = 'json';
  // `null` is a valid body, too: nobody is signed in.
  ctx.body = JSON.stringify(withoutTokens(body));
}

/** A browser that somebody has just signed in with is known from now on. */
function rememberDevice(ctx: Context, services: AuthRouteDependencies, answer: Response, body: unknown): void {
  const email = (body as { user?: { email?: unknown } } | null)?.user?.email;
  const hasSession = answer.headers.getSetCookie().some((cookie) => /session_token=[^;]/.test(cookie));
  if (typeof email !== 'string' || !hasSession) return;
  if (services.devices.find(ctx.get('cookie'), email) !== undefined) return;
  setCookies(ctx, services, [services.devices.cookie(email, authPath)]);
}

/** The session's token is in its cookie, and must not be readable by scripts. */
function withoutTokens(body: unknown): unknown {
  if (Array.isArray(body)) return body.map(withoutTokens);
  if (typeof body !== 'object' || body === null) return body;
  const { token: _token, session, ...rest } = body as Record<string, unknown>;
  return { ...rest, ...(session === undefined ? {} : { session: withoutTokens(session) }) };
}
