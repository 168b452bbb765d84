import { parseExact, stringifyExact } from '../../shared/capabilities/exact-json.ts';
import { flatToolName } from '../../shared/capabilities/flat-tool-name.ts';
import { failedResult } from '../../shared/capabilities/thought-signature.ts';
import type { RoutedModel } from '../../shared/catalogue/catalogue.ts';
import { isObject, type JsonObject } from '../vendors/support/json-object.ts';
import { fitsStrictMode } from './strict-schema.ts';

const longName = /"name":"[a-zA-Z0-9_-]{65,}"/;
const failed = JSON.stringify(failedResult).slice(1, -1);
const strict = '"strict":true';

/**
 * A message's chat as vendors other than Anthropic take it: their tools have names of 64 characters at most, Anthropic's of 128, and
 * those with OpenAI's wire have no field for failed results, and refuse a strict schema that leaves the model a choice of properties.
 * The view shows the caller its own names. Only a request that may contain any of this is parsed.
 */
export function toVendorsMessage(request: string, { vendorRow: { dialect } }: Pick<RoutedModel, 'vendorRow'>): string {
  const isOpenAis = dialect === 'openai' || dialect === 'azure';
  const hasLongName = dialect !== 'anthropic' && longName.test(request);
  const hasFailure = isOpenAis && request.includes(failed);
  const hasStrict = isOpenAis && request.includes(strict);
  if (!hasLongName && !hasFailure && !hasStrict) return request;
  const { tools, tool_choice: choice, messages, response_format: format, ...rest } = parseExact(request) as JsonObject;
  const toVendorsTool = (tool: unknown): unknown =>
    withShortName(isOpenAis ? withFittingSchema(tool, 'function') : tool);
  return stringifyExact({
    ...rest,
    ...(format !== undefined && { response_format: isOpenAis ? withFittingSchema(format, 'json_schema') : format }),
    ...(Array.isArray(tools) && { tools: tools.map(toVendorsTool) }),
    ...(choice !== undefined && { tool_choice: withShortName(choice) }),
    messages: listOf(messages).map((message) => toVendorsTurn(message, isOpenAis)),
  });
}

/** A tool, or a format, which is not strict if its schema does not fit that. */
function withFittingSchema(given: unknown, name: 'function' | 'json_schema'): unknown {
  const described = isObject(given) ? given[name] : undefined;
  if (!isObject(given) || !isObject(described) || described.strict !== true) return given;
  const { strict: _, ...loose } = described;
  return fitsStrictMode(described.parameters ?? described.schema) ? given : { ...given, [name]: loose };
}

function toVendorsTurn({ extra_content: extra, ...message }: JsonObject, dropsFailure: boolean): JsonObject {
  const { role, tool_calls: calls } = message;
  return {
    ...message,
    ...(extra !== undefined && !(dropsFailure && role === 'tool') && { extra_content: extra }),
    ...(Array.isArray(calls) && { tool_calls: calls.map(withShortName) }),
  };
}

/** A tool, a choice or a call; a choice may be a word. */
function withShortName(named: unknown): unknown {
  if (!isObject(named) || !isObject(named.function)) return named;
  return { ...named, function: { ...named.function, name: flatToolName(undefined, String(named.function.name)) } };
}

function listOf(value: unknown): JsonObject[] {
  return Array.isArray(value) ? value.filter(isObject) : [];
}
