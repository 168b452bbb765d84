import { countTokens } from 'gpt-tokenizer/encoding/o200k_base';

type Fields = Readonly<Record<string, unknown>>;

/** What every message costs beside its text, and what the beginning of the answer does: OpenAI's rule for its chats. */
const tokensPerMessage = 4;
const tokensPerAnswer = 3;
/** OpenAI's count for an image of 1024×1024 pixels in high detail. */
const tokensPerImage = 765;
/** A page of a PDF takes some 50 kB, and some 2,000 tokens; in base64 that is 33 characters to a token. */
const charactersPerFileToken = 33;

/** How long a text is tokenized at a time, and how long a run without a break may be in it: merging costs its square. */
const longestPiece = 65_536;
const longestRun = 200;
const longRun = new RegExp(`\\S{${longestRun + 1}}|\\s{${longestRun + 1}}`);
const shortRuns = new RegExp(`\\s{0,${longestRun}}\\S{1,${longestRun}}|\\s{1,${longestRun}}`, 'g');

/** What in a text looks like a mark of the tokenizer's is text. */
const plainText = { disallowedSpecial: new Set<string>() };

/**
 * About how many tokens the input of a chat has, by the tokenizer of OpenAI's newer models. Images and files, which are not
 * opened, count by rules of thumb.
 * @param request JSON text of a chat request
 */
export function countChatTokens(request: string): number {
  const { messages, tools, response_format: format } = JSON.parse(request) as Fields;
  let tokens = tokensPerAnswer;
  for (const message of listOf(messages)) tokens += tokensPerMessage + countMessage(message);
  for (const part of [tools, format]) if (part !== undefined) tokens += countText(JSON.stringify(part));
  return tokens;
}

function countMessage({ content, reasoning_content: reasoning, tool_calls: calls }: Fields): number {
  let tokens = typeof content === 'string' ? countText(content) : 0;
  for (const part of listOf(content)) tokens += countPart(part);
  if (typeof reasoning === 'string') tokens += countText(reasoning);
  for (const { function: called } of listOf(calls)) {
    const { name, arguments: text } = (called ?? {}) as Fields;
    tokens += countText(String(name)) + countText(String(text));
  }
  return tokens;
}

function countPart(part: Fields): number {
  if (typeof part.text === 'string') return countText(part.text);
  if (part.type === 'image_url') return tokensPerImage;
  const { file_data: data } = (part.file ?? {}) as Fields;
  return typeof data === 'string' ? Math.ceil(data.length / charactersPerFileToken) : 0;
}

/** The tokens of a text. It is cut where words begin, and long runs, which hardly occur in language, anywhere. */
export function countText(text: string): number {
  let tokens = 0;
  for (let start = 0; start < text.length; ) {
    const end = pieceEnd(text, start);
    const piece = text.slice(start, end);
    if (!longRun.test(piece)) tokens += countTokens(piece, plainText);
    else for (const [run] of piece.matchAll(shortRuns)) tokens += countTokens(run, plainText);
    start = end;
  }
  return tokens;
}

function pieceEnd(text: string, start: number): number {
  if (text.length - start <= longestPiece) return text.length;
  const space = text.lastIndexOf(' ', start + longestPiece);
  return space > start ? space : start + longestPiece;
}

function listOf(value: unknown): Fields[] {
  return Array.isArray(value) ? (value as Fields[]) : [];
}
