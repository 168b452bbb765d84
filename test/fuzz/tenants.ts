import { signIn, signUp } from '../support/console-session.ts';
import { eventually } from '../support/eventually.ts';
import type { TestGateway } from '../support/gateway.ts';
import { makeApiKey } from '../support/make-api-key.ts';
import type { Credential } from './samples.ts';

export const operatorSettings = {
  SLUICE_ADMIN_EMAIL: 'operator@example.com',
  SLUICE_ADMIN_PASSWORD: 'an operator password',
};

type Ids = Readonly<Record<'job' | 'video' | 'response' | 'key' | 'account' | 'user', string>>;

/** What a caller has to name in its requests, and what it must not be able to. */
export interface Tenant {
  readonly headers: Readonly<Record<Credential, Readonly<Record<string, string>>>>;
  readonly ids: Ids;
  readonly otherIds: Ids;
}

/** Makes a tenant with a job, a response and a video of its own, beside another one. */
export async function makeTenant(gateway: TestGateway): Promise<Tenant> {
  const { SLUICE_ADMIN_EMAIL: email, SLUICE_ADMIN_PASSWORD: password } = operatorSettings;
  const key = await makeApiKey(gateway, { accountId: 'fuzzer' });
  const otherKey = await makeApiKey(gateway, { accountId: 'other' });
  const operatorKey = await makeApiKey(gateway, { kind: 'operator' });
  // What operators change or delete: without it nothing would be left to ask with.
  for (const accountId of ['spare', 'other-spare']) await makeApiKey(gateway, { accountId });
  await signUp(gateway, 'spare@example.com');
  const { cookie } = await signIn(gateway, email, password);
  const bearer = (text: string): Record<string, string> => ({ authorization: `Bearer ${text}` });
  const listed = async (path: string): Promise<string> => {
    const response = await gateway.fetch(path, { headers: bearer(operatorKey) });
    return ((await response.json()) as { data: { id: string }[] }).data[0]?.id ?? '';
  };
  const user = await listed('/admin/v1/users?search=spare@example.com');
  const idsOf = async (owner: string, account: string): Promise<Ids> => ({
    ...(await makeOwned(gateway, bearer(owner))),
    ...{ account, user, key: await listed(`/admin/v1/accounts/${account}/keys`) },
  });
  return {
    headers: {
      ...{ key: bearer(key), operator_key: bearer(operatorKey), none: {} },
      session: { cookie, origin: gateway.url },
    },
    ids: await idsOf(key, 'spare'),
    otherIds: await idsOf(otherKey, 'other-spare'),
  };
}

/** The same tenant, with new ones of what its requests may have deleted. */
export async function renewed(gateway: TestGateway, tenant: Tenant): Promise<Tenant> {
  return { ...tenant, ids: { ...tenant.ids, ...(await makeOwned(gateway, { ...tenant.headers.key })) } };
}

async function makeOwned(
  gateway: TestGateway,
  headers: Record<string, string>,
): Promise<Pick<Ids, 'job' | 'video' | 'response'>> {
  const make = async (path: string, body: object, more: Record<string, string> = {}): Promise<string> => {
    const init = { method: 'POST', body: JSON.stringify(body), headers: { ...headers, ...more } };
    return ((await (await gateway.fetch(path, init)).json()) as { id: string }).id;
  };
  const messages = [{ role: 'user', content: 'Hi' }];
  const job = await make('/v1/chat/completions', { model: 'sandbox-chat', messages }, { prefer: 'respond-async' });
  const response = await make('/v1/responses', { model: 'sandbox-chat', input: 'Hi', background: true });
  const video = await make('/v1/videos', {
    model: 'sandbox-video',
    prompt: 'Hi',
    sandbox: { video: { duration_ms: 0 } },
  });
  for (const path of [`/v1/jobs/${job}`, `/v1/responses/${response}`, `/v1/videos/${video}`]) {
    await eventually(async () => {
      const { status } = (await (await gateway.fetch(path, { headers })).json()) as { status: string };
      if (status !== 'completed') throw new Error(`${path} is ${status}`);
    });
  }
  return { job, response, video };
}
