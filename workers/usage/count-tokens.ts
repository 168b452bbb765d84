import { countTokens } from 'gpt-tokenizer/encoding/o200k_base';
import { objectsOf } from '../../shared/capabilities/vendor-values.ts';

type Fields = Readonly<Record<string, unknown>>;

/**
 * The cost of every message beside its text, including its role, and of the beginning of the answer: OpenAI's rule for its chats
 * (https://github.com/openai/openai-cookbook/blob/main/examples/How_to_count_tokens_with_tiktoken.ipynb).
 */
const tokensPerMessage = 4;
const tokensPerAnswer = 3;
/**
 * GPT-4o's cost of an image of 1024×1024 pixels in high detail: 85, and 170 for each of its four tiles once it is scaled down to
 * 768×768 (https://platform.openai.com/docs/guides/images-vision#calculating-costs).
 */
const tokensPerImage = 765;
/** The same in low detail. */
const tokensPerSmallImage = 85;
/**
 * Anthropic counts 1,500 to 3,000 tokens for a page of a PDF (https://docs.claude.com/en/docs/build-with-claude/pdf-support). The
 * bytes of a page are unknown without opening the file: 50 kB, which is 33 characters of base64 per token, is a guess.
 */
const charactersPerFileToken = 33;
/** The same for a text, of which the bytes are known: a token has three, of which each is 4/3 characters of base64. */
const textFile = /^data:text\//i;
const charactersPerTextToken = 4;
/** A document that only its vendor reads, by a link or an id: ten pages, as its length is unknown. */
const tokensPerLinkedFile = 20_000;
/**
 * OpenAI and Google count 10 and 32 tokens for a second of sound. Of a WAV at least 32 kB are a second of speech (16,000 samples of 16
 * bits), of other formats 4 kB.
 */
const tokensPerSecond = 32;
const [wavBytesPerSecond, soundBytesPerSecond] = [32_000, 4000];

/**
 * How much of a request's text is tokenized, in characters. A longer text is sampled evenly: text without words (base64, emoji)
 * takes 3 to 6 s per million characters.
 */
const maxCounted = 1_000_000;
/** Maximum length of a tokenized piece, and of a run without a break in it: merging costs the square of a run's length. */
const maxPiece = 8192;
const maxRun = 200;
const longRun = new RegExp(`\\S{${maxRun + 1}}|\\s{${maxRun + 1}}`);
const shortRuns = new RegExp(`\\s{0,${maxRun}}\\S{1,${maxRun}}|\\s{1,${maxRun}}`, 'g');

/** Text that looks like a special token is treated as text. */
const plainText = { disallowedSpecial: new Set<string>() };

/**
 * Estimates the input tokens of a chat, with the tokenizer of OpenAI's newer models. Images and files, which are not opened,
 * count by rules of thumb.
 * @param request JSON text of a chat request
 */
export function countChatTokens(request: string): number {
  return countChat(JSON.parse(request) as Fields);
}

/** The same for a parsed request. @param maxCharacters how much of its text is tokenized */
export function countChat(chat: Fields, maxCharacters = maxCounted): number {
  const { messages, tools, functions, response_format: format } = chat;
  const { json_schema: schema } = (format ?? {}) as Fields;
  const texts = [tools, functions, schema].flatMap((part) => (part == null ? [] : JSON.stringify(part)));
  let tokens = tokensPerAnswer;
  for (const message of objectsOf(messages)) tokens += tokensPerMessage + readMessage(message, texts);
  return tokens + countTexts(texts, maxCharacters);
}

/** Adds the texts of a message to `texts`; returns the tokens of its other content. */
function readMessage(message: Fields, texts: string[]): number {
  const { content, reasoning_content: reasoning, tool_calls: calls, function_call: legacy } = message;
  if (typeof content === 'string') texts.push(content);
  if (typeof reasoning === 'string') texts.push(reasoning);
  for (const call of [...objectsOf(calls), { function: legacy }]) {
    const { name = '', arguments: json, input = '' } = (call.function ?? call.custom ?? {}) as Fields;
    texts.push(String(name), String(json ?? input));
  }
  let tokens = 0;
  for (const part of objectsOf(content)) {
    const text = part.text ?? part.refusal;
    if (typeof text === 'string') texts.push(text);
    else if (part.type === 'image_url' || part.type === 'input_image') tokens += tokensOfImage(part);
    else tokens += tokensOfSound(part) + tokensOfFile(part);
  }
  return tokens;
}

function tokensOfSound({ input_audio: sound }: Fields): number {
  const { data, format } = (sound ?? {}) as Fields;
  if (typeof data !== 'string') return 0;
  const bytes = (data.length * 3) / 4;
  return Math.round((bytes / (format === 'wav' ? wavBytesPerSecond : soundBytesPerSecond)) * tokensPerSecond);
}

/** A chat has the fields of a file below `file`, a Responses request beside the type. */
function tokensOfFile(part: Fields): number {
  const { file_data: data, file_url: url, file_id: id } = (part.file ?? part) as Fields;
  if (typeof data !== 'string') return (url ?? id) == null ? 0 : tokensPerLinkedFile;
  return Math.ceil(data.length / (textFile.test(data) ? charactersPerTextToken : charactersPerFileToken));
}

/** A chat's image has the detail beside the URL, one of a Responses request beside the type. */
function tokensOfImage({ image_url: url, detail }: Fields): number {
  const asked = detail ?? (url as { readonly detail?: unknown } | null | undefined)?.detail;
  return asked === 'low' ? tokensPerSmallImage : tokensPerImage;
}

/**
 * The tokens of texts. Texts are split before words, and long runs, which are rare in language, anywhere; of more than
 * `maxCharacters` characters about that many are counted.
 */
export function countTexts(texts: readonly string[], maxCharacters = maxCounted): number {
  const length = texts.reduce((sum, text) => sum + text.length, 0);
  const share = Math.min(1, maxCharacters / length);
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
