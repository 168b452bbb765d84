import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { flatToolName } from '../../../../shared/capabilities/flat-tool-name.ts';
import { translate } from '../../../support/response-as-chat.ts';

type Fields = Record<string, unknown>;

describe('the tools of a response request over a chat', () => {
  const messages = [{ role: 'user', content: 'Hi' }];
  const parameters = { type: 'object', properties: { city: { type: 'string' } } };
  const weather = { type: 'function', name: 'get_weather', description: 'Weather.', parameters, strict: true };
  const bare = {
    type: 'function',
    name: 'bare',
    description: null,
    parameters: null,
    strict: null,
    defer_loading: true,
  };
  const grammar = { type: 'grammar', syntax: 'lark', definition: 'start: "x"' };
  const exec = { type: 'custom', name: 'exec', description: 'Runs.', format: grammar };
  const calendar = {
    ...{ type: 'namespace', name: 'calendar', description: 'Dates.' },
    tools: [
      { ...weather, name: 'create' },
      { type: 'custom', name: 'note', format: { type: 'text' } },
    ],
  };
  const hosted = [{ type: 'web_search' }, { type: 'mcp', server_label: 'a' }, { type: 'local_shell' }];
  const tools = [weather, bare, ...hosted, exec, calendar];

  const asFunction = (name: string, more: Fields = {}) => ({ type: 'function', function: { name, ...more } });
  const free = (description: string) => ({
    parameters: { type: 'object', properties: { input: { type: 'string', description } }, required: ['input'] },
  });
  const chatTools = [
    asFunction('get_weather', { description: 'Weather.', parameters, strict: true }),
    asFunction('bare'),
    asFunction('exec', { description: 'Runs.', ...free('Text that follows this lark grammar:\nstart: "x"') }),
    asFunction('calendar__create', { description: 'Weather.', parameters, strict: true }),
    asFunction('calendar__note', free('The input of the tool, free text.')),
  ];
  const named = (...names: string[]) => chatTools.filter(({ function: { name } }) => names.includes(name));

  it('the tools of a response over a chat are all functions, without hosted tools', () => {
    assert.deepEqual(translate({ tools, parallel_tool_calls: false }), {
      ...{ messages, tools: chatTools, parallel_tool_calls: false },
    });
  });

  it('tool_choice of a response over a chat keeps its mode or names the function of the chosen tool', () => {
    const choices: [choice: unknown, chat: unknown][] = [
      ...['none', 'auto', 'required'].map((choice): [string, string] => [choice, choice]),
      [{ type: 'function', name: 'bare' }, asFunction('bare')],
      [{ type: 'custom', name: 'exec' }, asFunction('exec')],
      [{ type: 'function', name: 'create', namespace: 'calendar' }, asFunction('calendar__create')],
      [{ type: 'function', name: 'create' }, asFunction('calendar__create')],
    ];
    for (const [choice, chat] of choices) {
      assert.deepEqual(translate({ tools, tool_choice: choice }), { messages, tools: chatTools, tool_choice: chat });
    }
    const twice = translate({
      tools: [calendar, { ...weather, name: 'create' }],
      tool_choice: { type: 'function', name: 'create' },
    });
    assert.deepEqual(twice.tool_choice, asFunction('create'));
  });

  it('allowed_tools of a response over a chat leaves only the allowed tools', () => {
    const allow = (...allowed: Fields[]) => {
      const choice = { type: 'allowed_tools', mode: 'required', tools: allowed };
      const { tools: offered, tool_choice: mode } = translate({ tools, tool_choice: choice });
      assert.equal(mode, 'required');
      return offered;
    };
    assert.deepEqual(allow({ type: 'function', name: 'bare' }, { type: 'web_search' }), named('bare'));
    assert.deepEqual(allow({ type: 'custom', name: 'exec' }), named('exec'));
    assert.deepEqual(allow({ type: 'namespace', name: 'calendar' }), named('calendar__create', 'calendar__note'));
    assert.deepEqual(allow({ type: 'custom', name: 'note', namespace: 'calendar' }), named('calendar__note'));
    assert.deepEqual(allow({ type: 'custom', name: 'note' }), named('calendar__note'));
    assert.deepEqual(
      allow({ type: 'function', name: 'bare', namespace: 'calendar' }, { type: 'custom', name: 'exec' }),
      named('exec'),
    );
  });

  it('allowed_tools may name very many of as many tools', () => {
    const toolOf = (at: number) => ({ type: 'function', name: `tool_${at}` });
    const all = Array.from({ length: 100_000 }, (_, at) => toolOf(at));
    const choice = { type: 'allowed_tools', mode: 'auto', tools: all.toReversed() };
    assert.equal((translate({ tools: all, tool_choice: choice }).tools as unknown[]).length, all.length);
  });

  it('a response over a chat with only hosted tools has no tool fields at all', () => {
    for (const choice of [undefined, null, 'auto', 'none']) {
      const given = { tools: hosted, tool_choice: choice, parallel_tool_calls: true };
      assert.deepEqual(translate(given), { messages });
    }
    const auto = { type: 'allowed_tools', mode: 'auto', tools: [{ type: 'web_search' }] };
    assert.deepEqual(translate({ tools, tool_choice: auto }), { messages });
  });

  it('tool_choice of a response over a chat is rejected when it forces a tool that is not there', () => {
    const forced: [tools: unknown[], choice: unknown][] = [
      [hosted, 'required'],
      [tools, { type: 'web_search' }],
      [tools, { type: 'function', name: 'other' }],
      [tools, { type: 'function', name: 'create', namespace: 'other' }],
      [tools, { type: 'allowed_tools', mode: 'required', tools: [{ type: 'web_search' }] }],
    ];
    for (const [given, choice] of forced) {
      assert.throws(() => translate({ tools: given, tool_choice: choice }), { status: 400, param: 'tool_choice' });
    }
  });

  it('flatToolName makes unique names that a chat accepts', () => {
    assert.equal(flatToolName(undefined, 'get_weather'), 'get_weather');
    assert.equal(flatToolName('calendar', 'create'), 'calendar__create');
    const long = 'n'.repeat(128);
    const odd = [
      flatToolName(undefined, long),
      flatToolName('a', long),
      flatToolName('b.c/d', 'e'),
      flatToolName('b/c/d', 'e'),
    ];
    assert.equal(new Set(odd).size, odd.length);
    for (const name of odd) assert.match(name, /^[a-zA-Z0-9_-]{1,64}$/);
    assert.match(flatToolName('b.c/d', 'e'), /^b_c_d__e_[0-9a-f]{8}$/);
  });
});
