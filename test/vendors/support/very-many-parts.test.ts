import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { toMessageRequest } from '../../../workers/vendors/anthropic/request.ts';
import { toConverseConversation } from '../../../workers/vendors/bedrock/turns.ts';
import { toGeminiContents } from '../../../workers/vendors/gemini/contents.ts';
import type { GeminiMedia } from '../../../workers/vendors/gemini/media.ts';
import type { InlineMedia } from '../../../workers/vendors/support/inline-media.ts';

/** More than a function of V8 takes as arguments, and fewer than the largest request may have. */
const count = 200_000;

const parts = Array.from({ length: count }, () => ({ type: 'text' as const, text: 'a' }));
const user = { role: 'user' as const, content: parts };
const assistant = { role: 'assistant' as const, content: parts };
const system = { role: 'system' as const, content: parts };

describe('messages of very many parts that become one turn', () => {
  it('Anthropic gets all of them, also of system messages', () => {
    const request = JSON.stringify({ messages: [system, { role: 'user', content: 'Hi' }, user, system] });
    const { model, stream } = { model: 'claude-3-haiku-20240307', stream: false };
    const sent = JSON.parse(toMessageRequest({ model, stream, request })) as {
      readonly system: readonly object[];
      readonly messages: readonly { readonly content: readonly object[] }[];
    };
    assert.equal(sent.system.length, 2 * count);
    assert.equal(sent.messages[0]?.content.length, count + 1);
  });

  it('Bedrock gets all of them', async () => {
    const chat = { messages: [{ role: 'user' as const, content: 'Hi' }, assistant, assistant, user] };
    const given = { family: 'claude' as const, hasTools: false };
    const { messages } = await toConverseConversation(chat, given, {} as InlineMedia);
    assert.deepEqual(
      messages.map(({ content }) => content.length),
      [1, 2 * count, count],
    );
  });

  it('Gemini gets all of them', async () => {
    const messages = [{ role: 'user' as const, content: 'Hi' }, assistant, assistant];
    const { contents } = await toGeminiContents(messages, 'gemini-3.8-flash', {} as GeminiMedia);
    assert.deepEqual(
      contents.map(({ parts: all }) => all.length),
      [1, 2 * count],
    );
  });
});
