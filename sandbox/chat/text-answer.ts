import { splitTokens, textStart } from '../tokens.ts';
import { invalidParameter } from '../wire-error.ts';
import { describeAttachments } from './attachments.ts';
import { type ChatMessage, endsWithToolResult, lastUserMessage, lastUserText, messageText } from './chat-message.ts';
import type { ChatRequest } from './chat-request.ts';

/** The tokens of a text answer, and the pace that the user's text requests. */
export interface TextAnswer {
  tokens: readonly string[];
  tokensPerSecond?: number;
}

const MAXIMUM_WORDS = 100_000;
const QUOTED_CHARACTERS = 80;

/**
 * The sandbox's text: the results of tools, what a directive in the user's last text demands, else a short echo.
 * @param choice index of the choice: choices and seeds vary the wording of the echo.
 */
export function answerText(request: ChatRequest, choice: number): TextAnswer {
  const { messages } = request;
  if (endsWithToolResult(messages)) return { tokens: splitTokens(retellToolResults(messages)) };
  const text = lastUserText(messages);
  const exact = exactText(text);
  if (exact !== undefined) return { tokens: splitTokens(exact) };
  return numberedWords(text) ?? countedNumbers(text) ?? { tokens: splitTokens(echo(request, text, choice)) };
}

/** The text after "Reply with exactly: " or "Repeat …: ", byte for byte; undefined if neither occurs. */
export function exactText(text: string): string | undefined {
  const directive = /reply with exactly: |\brepeat\b[^\n]{0,200}?: /i.exec(text);
  return directive === null ? undefined : text.slice(directive.index + directive[0].length);
}

/** Grown as needed and shared by all streams: otherwise thousands of long ones would hold the same words. */
const words: string[] = [];

const wordsDirective = /\bWORDS:(\d+)(?:@(\d+(?:\.\d+)?))?/;
const countDirective = /\bcount (?:up |down )?from (-?\d+) to (-?\d+)/i;

/** Whether a text demands a certain text. */
export function holdsTextDirective(text: string): boolean {
  return exactText(text) !== undefined || wordsDirective.test(text) || countDirective.test(text);
}

function numberedWords(text: string): TextAnswer | undefined {
  const directive = wordsDirective.exec(text);
  if (directive === null) return undefined;
  const count = Number(directive[1]);
  checkLength(count);
  while (words.length < count) words.push(words.length === 0 ? 'word1' : ` word${words.length + 1}`);
  const tokens = words.slice(0, count);
  const pace = Number(directive[2]);
  return pace > 0 ? { tokens, tokensPerSecond: pace } : { tokens };
}

function countedNumbers(text: string): TextAnswer | undefined {
  const directive = countDirective.exec(text);
  if (directive === null) return undefined;
  const first = Number(directive[1]);
  const last = Number(directive[2]);
  const step = last < first ? -1 : 1;
  const count = Math.abs(last - first) + 1;
  checkLength(count);
  const tokens = Array.from({ length: count }, (_, index) => `${index === 0 ? '' : ' '}${first + index * step}`);
  return { tokens };
}

function checkLength(count: number): void {
  if (count <= MAXIMUM_WORDS) return;
  throw invalidParameter('messages', `The sandbox answers at most ${MAXIMUM_WORDS} words.`);
}

function retellToolResults(messages: readonly ChatMessage[]): string {
  const asked = messages.findLastIndex((message) => message.role !== 'tool' && message.role !== 'function');
  const names = toolNames(messages[asked]);
  return messages
    .slice(asked + 1)
    .map((message) => {
      const name = message.name ?? names.get(message.tool_call_id);
      return `The tool${typeof name === 'string' ? ` ${name}` : ''} answered: ${messageText(message)}`;
    })
    .join('\n');
}

function toolNames(message: ChatMessage | undefined): Map<unknown, unknown> {
  const calls = Array.isArray(message?.tool_calls) ? message.tool_calls : [];
  return new Map(calls.map((call) => [call?.id, call?.function?.name ?? call?.custom?.name]));
}

const openings = [
  'This is the sandbox, a stand-in for a model. You wrote:',
  'The sandbox, which only stands in for a model, read your message:',
  'No model is at work here, only the sandbox. Your message begins:',
  'The sandbox heard you. You said:',
];

function echo(request: ChatRequest, text: string, choice: number): string {
  const sentences = describeAttachments(lastUserMessage(request.messages));
  if (text !== '' || sentences.length === 0) {
    const opening = openings[Math.abs(request.seed + choice) % openings.length];
    const quoted = textStart(text, QUOTED_CHARACTERS);
    sentences.push(`${opening} "${quoted}${quoted === text ? '' : '…'}"`);
  }
  return sentences.join(' ');
}
