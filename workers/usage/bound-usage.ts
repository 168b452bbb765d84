import type { Exchange, TokenCounts } from './count-exchange.ts';
import { readSaid } from './said-texts.ts';

/** No language's tokens are shorter than three bytes on the average; English ones have four. */
const bytesPerToken = 3;
/** What a request says of a picture, a sound or a file is no text: it stands for a page of a document, about. */
const inlineData = /"(?:data:[^"]{0,200};base64,)?[A-Za-z0-9+/=_-]{2000,}"/g;
const tokensPerInlineData = 2000;

/**
 * A bound of the tokens of an exchange, by its length: for an exchange that cannot be counted in time. It costs next to
 * nothing, and whoever has so much counted at once that it takes too long gains nothing by it.
 */
export function boundExchange({ endpoint, request, frames, length, largeLength }: Exchange): TokenCounts {
  const pictures = request.match(inlineData)?.length ?? 0;
  const text = pictures === 0 ? request : request.replace(inlineData, '');
  const prompt = tokensOf(Buffer.byteLength(text)) + pictures * tokensPerInlineData;
  if (endpoint === 'embeddings') return { prompt, completion: 0, reasoning: 0 };
  const read = frames.reduce((sum, frame) => sum + frame.length, 0);
  const { reasoning, others, large } = saidIn(frames, largeLength);
  const share = length / Math.max(1, read);
  const thought = tokensOf(reasoning * share);
  return { prompt, completion: thought + tokensOf(others * share + large), reasoning: thought };
}

/** Bytes of what frames have said; where they cannot be read, all of theirs. */
function saidIn(frames: readonly string[], largeLength: number): { reasoning: number; others: number; large: number } {
  try {
    const said = readSaid(frames);
    // A large event is a picture, or says again what its deltas have said.
    return {
      ...{ reasoning: bytesOf(said.reasoning), others: bytesOf(said.others) },
      large: said.areEvents ? 0 : largeLength,
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
