import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { gatewayPath, resources } from '../../../../api/http/gateway-path.ts';
import { appRoutes } from '../../../support/app-routes.ts';

describe('the path that a request means', () => {
  it('knows the first segment of every route of the API, and no other', async () => {
    const routes = await appRoutes();
    const segments = routes.flatMap((route) => /^[A-Z]+ \/v1\/([^/]+)/.exec(route)?.[1] ?? []);
    assert.deepEqual([...new Set(segments)].sort(), [...resources].sort());
  });

  const chat = '/v1/chat/completions';
  for (const slip of [
    ...['//v1/chat/completions', '/v1//chat/completions', '/v1/v1/chat/completions', '/chat/completions'],
    ...['/openai/v1/chat/completions', '/api/v1/chat/completions', '/openai/v1/v1/chat/completions'],
    ...['/V1/chat/completions', '/v1/Chat/completions', '//openai//v1//chat//completions'],
  ]) {
    it(`${slip} is ${chat}`, () => assert.equal(gatewayPath(slip), chat));
  }

  it('keeps the query, whatever stands in it, and what follows the resource', () => {
    assert.equal(gatewayPath('/openai/v1/models/a%2Fb?x=//v1/v1'), '/v1/models/a%2Fb?x=//v1/v1');
    assert.equal(gatewayPath('/v1/models?x=//v1/v1'), '/v1/models?x=//v1/v1');
    assert.equal(gatewayPath('/models?a=/b//c'), '/v1/models?a=/b//c');
  });

  it('leaves every target as it is that means no path of the API', async () => {
    for (const target of [
      ...['', '/', '//', '/v1', '/v1/', '/v1/files', '/chats', '/v1/chatter/completions', '*', 'example.com:443'],
      ...['/console/api/models', '//console/api/models', '/console/api/v1/models', '/admin/v1/models'],
      ...['//admin/v1/jobs', '/api/admin/v1/jobs', '/openai/console', '/results/5/models', '/metrics', '//metrics'],
      ...[
        '/api/models',
        '/openai/deployments/gpt/chat/completions',
        '/openai/chat/completions',
        '/v1/../admin/v1/jobs',
      ],
      ...['/v1/./models', '/%761/models', 'http://x/v1/v1/models', '/v1/openai/models', '/x/v1/models', '/v2/models'],
    ]) {
      assert.equal(gatewayPath(target), target);
    }
  });

  it('makes of no route another one, but for its slashes and case', async () => {
    for (const route of await appRoutes()) {
      const path = route.replace(/^\w+ /, '').replace(/[{*}]/g, '');
      assert.equal(gatewayPath(path), path);
    }
  });
});
