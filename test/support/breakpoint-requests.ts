// A conversation with a system prompt and a tool, which has each place that a breakpoint of a prompt cache may be set at.

export const turns = [
  { role: 'user', content: 'One' },
  { role: 'assistant', content: 'Hi!' },
  { role: 'user', content: 'Two' },
];
export const input_schema = { type: 'object', properties: {} };
export const message = { max_tokens: 16, system: 'Be brief.', tools: [{ name: 'f', input_schema }], messages: turns };
export const chat = {
  max_tokens: 16,
  tools: [{ type: 'function', function: { name: 'f', parameters: input_schema } }],
  messages: [{ role: 'system', content: 'Be brief.' }, ...turns],
};
