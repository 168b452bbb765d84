import { countTokens } from 'gpt-tokenizer/encoding/o200k_base';
import { listOf } from './said-texts.ts';

type Fields = Readonly<Record<string, unknown>>;

/**
 * What every message costs beside its text, its role among it, and what the beginning of the answer does: OpenAI's rule for
 * its chats (https://github.com/openai/openai-cookbook/blob/main/examples/How_to_count_tokens_with_tiktoken.ipynb).
 */
const tokensPerMessage = 4;
const tokensPerAnswer = 3;
/**
 * What GPT-4o takes for an image of 1024×1024 pixels in high detail: 85, and 170 for each of its four tiles once it is
 * scaled down to 768×768 (https://platform.openai.com/docs/guides/images-vision#calculating-costs).
 */
const tokensPerImage = 765;
/** The same in low detail. */
const tokensPerSmallImage = 85;
/**
 * Anthropic counts 1,500 to 3,000 tokens for a page of a PDF (https://docs.claude.com/en/docs/build-with-claude/pdf-support).
 * How many bytes a page has nobody can know without opening the file: 50 kB, which is 33 characters of base64 to a token,
 * is a guess.
 */
const charactersPerFileToken = 33;

/**
 * How much of a request's text is tokenized, in characters. Of a longer one pieces from all over it stand for the whole:
 * what has no words (base64, emoji) takes 3 to 6 s for each million characters.
 */
const maxCounted = 1_000_000;
/** How long a text is tokenized at a time, and how long a run without a break may be in it: merging costs its square. */
const maxPiece = 8192;
const maxRun = 200;
const longRun = new RegExp(`\\S{${maxRun + 1}}|\\s{${maxRun + 1}}`);
const shortRuns = new RegExp(`\\s{0,${maxRun}}\\S{1,${maxRun}}|\\s{1,${maxRun}}`, 'g');

/** What in a text looks like a mark of the tokenizer's is text. */
const plainText = { disallowedSpecial: new Set<string>() };

/**
 * About how many tokens the input of a chat has, by the tokenizer of OpenAI's newer models. Images and files, which are not
 * opened, count by rules of thumb.
 * @param request JSON text of a chat request
 */
export function countChatTokens(request: string): number {
  return countChat(JSON.parse(request) as Fields);
}

/** The same for one that is parsed. @param longest how much of its text is tokenized, in characters */
export function countChat(chat: Fields, longest = maxCounted): number {
  const { messages, tools, functions, response_format: format } = chat;
  const { json_schema: schema } = (format ?? {}) as Fields;
  const texts = [tools, functions, schema].flatMap((part) => (part == null ? [] : JSON.stringify(part)));
  let tokens = tokensPerAnswer;
  for (const message of listOf(messages)) tokens += tokensPerMessage + readMessage(message, texts);
  return tokens + countTexts(texts, longest);
}

/** Adds the texts of a message to `texts`; returns the tokens of what else it holds. */
function readMessage(message: Fields, texts: string[]): number {
  const { content, reasoning_content: reasoning, tool_calls: calls, function_call: legacy } = message;
  if (typeof content === 'string') texts.push(content);
  if (typeof reasoning === 'string') texts.push(reasoning);
  for (const call of [...listOf(calls), { function: legacy }]) {
    const { name = '', arguments: json, input = '' } = (call.function ?? call.custom ?? {}) as Fields;
    texts.push(String(name), String(json ?? input));
  }
  let tokens = 0;
  for (const part of listOf(content)) {
    const { file_data: data } = (part.file ?? part) as Fields;
    const text = part.text ?? part.refusal;
    if (typeof text === 'string') texts.push(text);
    else if (part.type === 'image_url' || part.type === 'input_image') tokens += tokensOfImage(part);
    else if (typeof data === 'string') tokens += Math.ceil(data.length / charactersPerFileToken);
  }
  return tokens;
}

/** In a chat's image the detail stands beside the URL, in one of a Responses request beside the type. */
function tokensOfImage({ image_url: url, detail }: Fields): number {
  const asked = detail ?? (url as { readonly detail?: unknown } | null | undefined)?.detail;
  return asked === 'low' ? tokensPerSmallImage : tokensPerImage;
}

/**
 * The tokens of texts. They are cut where words begin, and long runs, which hardly occur in language, anywhere; of more than
 * `longest` characters about so many are counted.
 */
export function countTexts(texts: readonly string[], longest = maxCounted): number {
  const length = texts.reduce((sum, text) => sum + text.length, 0);
  const share = Math.min(1, longest / length);
  let [tokens, seen, counted] = [0, 0, 0];
  for (const text of texts) {
    for (let start = 0; start < text.length; ) {
      const end = pieceEnd(text, start);
      if (counted <= share * seen) {
        tokens += countPiece(text.slice(start, end));
        counted += end - start;
      }
      seen += end - start;
      start = end;
    }
  }
  return counted === 0 ? 0 : Math.round(tokens * (seen / counted));
}

function countPiece(piece: string): number {
  if (!longRun.test(piece)) return countTokens(piece, plainText);
  let tokens = 0;
  for (const [run] of piece.matchAll(shortRuns)) tokens += countTokens(run, plainText);
  return tokens;
}

function pieceEnd(text: string, start: number): number {
  if (text.length - start <= maxPiece) return text.length;
  const space = text.lastIndexOf(' ', start + maxPiece);
  return space > start ? space : start + maxPiece;
}
