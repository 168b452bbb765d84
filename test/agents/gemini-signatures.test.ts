import assert from 'node:assert/strict';
import { after, before, beforeEach, describe, it } from 'node:test';
import { TestGateway } from '../support/gateway.ts';
import { type FixtureVendor, sendJson, sendStream, startFixtureVendor } from '../vendors/contracts/fixture-vendor.ts';
import { event, events, lastEvent } from '../vendors/recorded/recorded-gemini.ts';
import { AgentBench } from './agent-bench.ts';
import type { AgentRun } from './run-agent.ts';

type Fields = Record<string, unknown>;

const model = 'gemini-3.8-flash';
const thoughtSignature = 'CsUBAdHtim9xSluice/+==';
const answer = 'It said 42.';
const command = "expr 6 '*' 7";

/** What the model was told in the turns of one conversation, from Gemini's side. */
function modelParts({ body }: { readonly body: string }): Fields[] {
  const { contents } = JSON.parse(body) as { contents: { role: string; parts: Fields[] }[] };
  return contents.filter(({ role }) => role === 'model').flatMap(({ parts }) => parts);
}

describe('an agent with a model of Gemini', () => {
  let gateway: TestGateway;
  let gemini: FixtureVendor;
  before(async () => {
    gemini = await startFixtureVendor();
    const settings = { GEMINI_API_KEY: 'AIzaSyTest0123456789abcdefghijklm', GEMINI_BASE_URL: gemini.baseUrl };
    gateway = await TestGateway.start({ settings });
  });
  after(async () => {
    await gateway.stop();
    await gemini.close();
  });
  beforeEach(() => {
    gemini.requests.length = 0;
  });
  const bench = new AgentBench(() => gateway);

  /** Has the model think, call the tool once, and answer when it has its result. */
  const callTool = (name: string, args: object): void => {
    gemini.answer((response, request) => {
      if (request.url?.includes(':countTokens')) return sendJson(response, 200, '{"totalTokens":9}');
      const isDone = request.body.includes('"functionResponse"');
      const said = isDone
        ? [event([{ text: answer }]), lastEvent([{ text: '', thoughtSignature: 'EhQKEgFyz' }])]
        : [
            event([{ text: 'I run it.', thought: true }]),
            event([{ functionCall: { id: 'fc_1', name, args }, thoughtSignature }]),
            lastEvent([{ text: '' }]),
          ];
      sendStream(response, [events(said)]);
    });
  };

  /** Gemini got the signature back on the very call. */
  const assertSigned = (run: AgentRun, name: string): void => {
    const second = gemini.requests.find(({ body }) => body.includes('"functionResponse"'));
    assert.ok(second, JSON.stringify(run));
    const calls = modelParts(second).filter((part) => 'functionCall' in part);
    assert.deepEqual(
      calls.map(({ functionCall, thoughtSignature: signed }) => [(functionCall as Fields).name, signed]),
      [[name, thoughtSignature]],
    );
  };

  it('Claude Code sends the signature of a call back', async () => {
    callTool('Bash', { command });
    const run = await bench.runClaude('Run it.', { model });
    assert.equal(run.events.find(({ type }) => type === 'result')?.result, answer, JSON.stringify(run));
    assertSigned(run, 'Bash');
  });

  for (const webSocket of [false, true]) {
    it(`Codex sends the signature of a call back over ${webSocket ? 'WebSocket' : 'SSE'}`, async () => {
      callTool('exec_command', { cmd: command });
      const run = await bench.runCodex('Run it.', { model, webSocket });
      const messages = run.events.filter(({ type, item }) => {
        return type === 'item.completed' && item.type === 'agent_message';
      });
      assert.deepEqual(
        messages.map(({ item }) => item.text),
        [answer],
        JSON.stringify(run),
      );
      assertSigned(run, 'exec_command');
    });
  }
});
