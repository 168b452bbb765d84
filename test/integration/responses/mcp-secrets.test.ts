import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type OpenAI from 'openai';
import { TestGateway } from '../../support/gateway.ts';

describe('secrets of MCP servers in responses', () => {
  let gateway: TestGateway;
  before(async () => {
    gateway = await TestGateway.start();
  });
  after(() => gateway.stop());

  it('a response never shows the token, the header values or the path of an MCP server, created, streamed or read', async () => {
    const secrets = ['token-of-oauth', 'value-of-header', 'key-in-path'] as const;
    const [authorization, header, path] = secrets;
    const server_url = `https://mcp.example.com/${path}/mcp?k=${path}`;
    const tool = {
      type: 'mcp',
      server_label: 'notes',
      server_url,
      authorization,
      headers: { 'X-Key': header },
    } as const;
    const body = JSON.stringify({ model: 'sandbox-chat', input: 'Hi', tools: [tool] });
    const created = await (await gateway.fetch('/v1/responses', { method: 'POST', body })).text();
    const response = JSON.parse(created) as OpenAI.Responses.Response;
    assert.deepEqual(response.tools, [
      {
        ...{ type: 'mcp', server_label: 'notes', headers: { 'X-Key': '<redacted>' } },
        server_url: 'https://mcp.example.com/<redacted>',
      },
    ]);
    const streaming = JSON.stringify({ ...JSON.parse(body), stream: true });
    const streamed = await (await gateway.fetch('/v1/responses', { method: 'POST', body: streaming })).text();
    assert.match(streamed, /response\.completed/);
    const read = await (await gateway.fetch(`/v1/responses/${response.id}`)).text();
    for (const text of [created, streamed, read]) {
      for (const secret of secrets) assert.ok(!text.includes(secret), text);
    }
  });
});
