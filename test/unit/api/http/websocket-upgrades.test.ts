import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { gatewayPath, resources } from '../../../../api/http/request-address.ts';
import { appRoutes } from '../../../support/app-routes.ts';

describe('gatewayPath', () => {
  it('gatewayPath knows the first segment of every API route, and no other', async () => {
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
    it(`gatewayPath maps ${slip} to ${chat}`, () => assert.equal(gatewayPath(slip), chat));
  }

  it('gatewayPath keeps the query and everything after the resource', () => {
    assert.equal(gatewayPath('/openai/v1/models/a%2Fb?x=//v1/v1'), '/v1/models/a%2Fb?x=//v1/v1');
    assert.equal(gatewayPath('/v1/models?x=//v1/v1'), '/v1/models?x=//v1/v1');
    assert.equal(gatewayPath('/models?a=/b//c'), '/v1/models?a=/b//c');
  });

  it('gatewayPath leaves every target unchanged that is no path of the API', async () => {
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

  it('gatewayPath never maps a route to another route', async () => {
    for (const route of await appRoutes()) {
      const path = route.replace(/^\w+ /, '').replace(/[{*}]/g, '');
      assert.equal(gatewayPath(path), path);
    }
  });
});
