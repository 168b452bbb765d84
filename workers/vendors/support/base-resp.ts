import { isObject, type JsonObject } from './json-object.ts';

/** HTTP statuses of MiniMax's codes (https://platform.minimax.io/docs/api-reference/errorcode); every other code is a 500. */
const statuses: Readonly<Record<number, number>> = {
  ...{ 1001: 504, 1002: 429, 1004: 401, 1008: 402, 1026: 400, 1027: 400, 1039: 429, 1041: 429, 2013: 400, 2049: 401 },
};
/** Codes of a refused prompt or answer. */
const sensitive: ReadonlySet<unknown> = new Set([1026, 1027]);

/** MiniMax's error under a status of success: `base_resp` with a code other than 0. Undefined: there is none. */
export function baseRespFault({
  base_resp: baseResp,
}: JsonObject): { status: number; code: string | null; message: unknown } | undefined {
  if (!isObject(baseResp) || typeof baseResp.status_code !== 'number' || baseResp.status_code === 0) return undefined;
  const { status_code: code, status_msg: message } = baseResp;
  return { status: statuses[code] ?? 500, code: sensitive.has(code) ? 'content_filter' : null, message };
}
