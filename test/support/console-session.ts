import assert from 'node:assert/strict';
import type { TestGateway } from './gateway.ts';

/** A browser's session with the console of a gateway: its cookie. */
export interface ConsoleSession {
  readonly cookie: string;
}

/** Signs up as a new user. */
export async function signUp(gateway: TestGateway, email: string): Promise<ConsoleSession> {
  const password = 'a long password';
  await enter(gateway, 'sign-up', { name: 'Somebody', email, password });
  return await signIn(gateway, email, password);
}

/** Signs in. */
export async function signIn(gateway: TestGateway, email: string, password: string): Promise<ConsoleSession> {
  const cookies = await enter(gateway, 'sign-in', { email, password });
  assert.ok(cookies.length > 0, 'no cookie was set');
  return { cookie: cookies.join('; ') };
}

async function enter(gateway: TestGateway, way: 'sign-up' | 'sign-in', fields: object): Promise<string[]> {
  const response = await fetch(`${gateway.url}/console/api/auth/${way}/email`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', origin: gateway.url },
    body: JSON.stringify(fields),
  });
  assert.equal(response.status, 200, await response.text());
  return response.headers.getSetCookie().map((cookie) => cookie.slice(0, cookie.indexOf(';')));
}
