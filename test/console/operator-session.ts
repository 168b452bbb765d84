import assert from 'node:assert/strict';
import type { TestGateway } from '../support/gateway.ts';
import type { Session, TestBrowser } from './browser.ts';

/** The first operator of a gateway under test. */
export const operator = { email: 'operator@example.com', password: 'correct horse battery' };

/** The settings that make them. */
export const operatorSettings = { SLUICE_ADMIN_EMAIL: operator.email, SLUICE_ADMIN_PASSWORD: operator.password };

/** Signs the operator in, once for a suite: attempts are counted. */
export async function operatorSession(browser: TestBrowser, gateway: TestGateway): Promise<Session> {
  const context = await browser.context(gateway.url);
  const answer = await context.request.post('/console/api/auth/sign-in/email', {
    data: operator,
    headers: { origin: gateway.url },
  });
  assert.equal(answer.status(), 200, await answer.text());
  const session = await context.storageState();
  await context.close();
  return session;
}
