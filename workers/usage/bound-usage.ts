import { type AnswerTexts, readTexts } from './answer-texts.ts';
import { type Exchange, type TokenCounts, withPrompts } from './exchange.ts';

/** In no language are tokens shorter than three bytes on average; English ones have four. */
const bytesPerToken = 3;
/**
 * Data of a picture, a sound or a file in a request is not text: a picture counts as roughly a page of a document, another one as a
 * page for each 50 kB, too.
 */
const inlineData = /"(?:data:[^"]{0,200};base64,)?[A-Za-z0-9+/=_-]{2000,}"/g;
const tokensPerInlineData = 2000;
const charactersPerInlineToken = 33;

/**
 * An upper bound of an exchange's tokens, from its length: for an exchange that cannot be counted in time. It costs almost
 * nothing, and causing a count to time out gains a caller nothing.
 */
export function boundExchange(exchange: Exchange): TokenCounts {
  const { endpoint, frames, length, largeLength } = exchange;
  const request = sentOf(exchange);
  const data = request.match(inlineData) ?? [];
  const text = data.length === 0 ? request : request.replace(inlineData, '');
  const prompt = tokensOf(Buffer.byteLength(text)) + data.reduce((sum, each) => sum + tokensOfData(each), 0);
  if (endpoint === 'embeddings') return { prompt, completion: 0, reasoning: 0 };
  const read = frames.reduce((sum, frame) => sum + frame.length, 0);
  const { reasoning, others, large, texts } = textBytesIn(frames, largeLength);
  const share = length / Math.max(1, read);
  const thought = tokensOf(reasoning * share);
  const counts = { prompt, completion: thought + tokensOf(others * share + large), reasoning: thought };
  // Otherwise the request need not be parsed.
  return endpoint === 'completions' ? withPrompts(counts, exchange, JSON.parse(exchange.request), texts) : counts;
}

/** The request without the inputs of embeddings, or prompts of a legacy completion, that its vendor was not sent. */
function sentOf({ endpoint, request, inputsSent }: Exchange): string {
  if (inputsSent === undefined) return request;
  const name = endpoint === 'embeddings' ? 'input' : 'prompt';
  const { [name]: inputs, ...fields } = JSON.parse(request) as Readonly<Record<string, unknown>>;
  const isSeveral = Array.isArray(inputs) && typeof inputs[0] !== 'number';
  return JSON.stringify({ ...fields, [name]: isSeveral ? inputs.filter((_, index) => inputsSent.has(index)) : inputs });
}

function tokensOfData(data: string): number {
  const isPicture = data.startsWith('"data:image/');
  return Math.max(tokensPerInlineData, isPicture ? 0 : Math.ceil(data.length / charactersPerInlineToken));
}

/** Bytes of the texts in frames, and the texts; if they cannot be parsed, bytes of the whole frames. */
function textBytesIn(
  frames: readonly string[],
  largeLength: number,
): { reasoning: number; others: number; large: number; texts?: AnswerTexts } {
  try {
    const texts = readTexts(frames);
    // A large event is a picture, or repeats its deltas.
    return {
      ...{ reasoning: bytesOf(texts.reasoning), others: bytesOf(texts.others) },
      large: texts.areEvents ? 0 : largeLength,
      texts,
    };
  } catch {
    return { reasoning: 0, others: bytesOf(frames), large: largeLength };
  }
}

function bytesOf(texts: readonly string[]): number {
  return texts.reduce((sum, text) => sum + Buffer.byteLength(text), 0);
}

function tokensOf(bytes: number): number {
  return Math.ceil(bytes / bytesPerToken);
}
