/** A token with its log probability and the most likely alternatives, in OpenAI's format. */
export interface TokenLogprob {
  token: string;
  logprob: number;
  bytes: number[];
  top_logprobs: { token: string; logprob: number; bytes: number[] }[];
}

const alternatives = [
  ...[' the', ' a', ' and', ',', '.', ' of', ' to', ' in', ' is', ' it', ' that'],
  ...[' for', ' on', ' as', ' with', ' was', ' at', ' by', ' an', ' be', ' or'],
];

/**
 * A plausible log probability for a token, always the same for the same token: the token itself has between a half and nearly
 * all of the probability, each alternative half of the rest.
 */
export function tokenLogprob(token: string, topCount: number): TokenLogprob {
  const chosen = { token, logprob: round(Math.log(probability(token))), bytes: [...Buffer.from(token)] };
  const others = alternatives.filter((alternative) => alternative !== token).slice(0, Math.max(0, topCount - 1));
  const left = 1 - probability(token);
  const top_logprobs = others.map((other, index) => {
    return { token: other, logprob: round(Math.log(left * 0.5 ** (index + 1))), bytes: [...Buffer.from(other)] };
  });
  if (topCount > 0) top_logprobs.unshift(chosen);
  return { ...chosen, top_logprobs };
}

function probability(token: string): number {
  let hash = 7;
  for (let index = 0; index < token.length; index += 1) hash = (hash * 31 + token.charCodeAt(index)) % 997;
  return 0.5 + (hash / 997) * 0.49;
}

function round(logprob: number): number {
  return Math.round(logprob * 1e6) / 1e6;
}
