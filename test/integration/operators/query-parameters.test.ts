import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { adminOperations } from '../../../api/reference/admin-operations.ts';
import { AdminKeys } from '../../support/admin-keys.ts';
import { TestGateway } from '../../support/gateway.ts';

const routes = Object.entries(adminOperations).flatMap(([route, { query = {} }]) => {
  const [, method = '', path = ''] = /^(\w+) \/admin\/v1(\/\S+)$/.exec(route) ?? [];
  return path === '' ? [] : [{ method, path: path.replace(':id', 'unknown'), names: Object.keys(query) }];
});

interface Refusal {
  readonly error?: { readonly param: string | null; readonly message: string };
}

describe('parameters of the operators’ routes', () => {
  let gateway: TestGateway;
  let admin: AdminKeys;
  before(async () => {
    gateway = await TestGateway.start({ workers: 0 });
    admin = await AdminKeys.open(gateway);
  });
  after(() => gateway.stop());

  const refusal = async (method: string, path: string, body?: unknown) => {
    const response = await admin.ask(method, path, body);
    const text = await response.text();
    const error = text.startsWith('{') ? (JSON.parse(text) as Refusal).error : undefined;
    return { status: response.status, ...error };
  };

  test('a parameter that a route does not have is refused by its name, whatever the route does', async () => {
    assert.ok(routes.length > 25);
    for (const { method, path, names } of routes) {
      for (const name of ['modle', 'order', 'acount', '__proto__']) {
        const { status, param, message } = await refusal(method, `${path}?${name}=asc`);
        assert.deepEqual([status, param], [400, name], `${method} ${path}: ${message}`);
        const known = names.length === 0 ? 'none' : [...names].sort().join(', ');
        const told = /: this path takes (.*)\.$/.exec(message ?? '')?.[1] ?? '';
        assert.equal(told.split(', ').sort().join(', '), known, `${method} ${path}`);
      }
    }
    const { status, param, message } = await refusal('GET', '/jobs?%3Cscript%3E=1');
    assert.deepEqual([status, param], [400, 'query']);
    assert.doesNotMatch(message ?? '', /script/);
  });

  test('each parameter that the reference has is taken', async () => {
    for (const { method, path, names } of routes) {
      for (const name of names) {
        const { param, message = '' } = await refusal(method, `${path}?${name}=x`);
        assert.doesNotMatch(message, /Unknown query parameter/, `${method} ${path} ${name} ${param}`);
      }
    }
  });

  test('an unknown field of a body is refused by its own name', async () => {
    const fields = { name: 'n', is_unlimted: true };
    const { status, param, message } = await refusal('POST', '/accounts', fields);
    assert.deepEqual([status, param, message], [400, 'is_unlimted', "Unknown parameter: 'is_unlimted'."]);
    const odd = await refusal('POST', '/accounts', { name: 'n', 'a <b> of words': 1 });
    assert.deepEqual([odd.status, odd.param], [400, null]);
    assert.doesNotMatch(odd.message ?? '', /words|'request'/);
  });
});
