import { argumentsSchema, type Tool, type ToolUse } from '../chat/tool-use.ts';
import { isAbsent, isObject, type JsonObject } from '../json-value.ts';
import { invalidParameter, WireError } from '../wire-error.ts';
import { missingMember, requiredText, unsupportedValue, wrongType } from './request-members.ts';

/** The tools an answer may use, and their form in the response. */
export interface ResponseTools {
  use: ToolUse;
  /** True if `tool_choice` allows only a web search. */
  forcesSearch: boolean;
  /** `tools` and `tool_choice` with their defaults filled in. */
  shown: { tools: readonly object[]; tool_choice: unknown };
}

/** The tools that the vendor itself would run, and the required members of each. Only the search is ever used here. */
const hostedTools: Readonly<Record<string, readonly string[]>> = {
  web_search: [],
  web_search_2025_08_26: [],
  web_search_preview: [],
  web_search_preview_2025_03_11: [],
  file_search: ['vector_store_ids'],
  computer: [],
  computer_use_preview: ['environment', 'display_width', 'display_height'],
  mcp: ['server_label'],
  code_interpreter: ['container'],
  programmatic_tool_calling: [],
  image_generation: [],
  local_shell: [],
  shell: [],
  namespace: ['name', 'description', 'tools'],
  tool_search: [],
  apply_patch: [],
};

/**
 * Parses `tools`, `tool_choice` and `parallel_tool_calls` of a request for a response.
 * @throws WireError 400 naming the parameter, also for the choice of a tool that is not offered, or that the sandbox cannot
 * run.
 */
export function readResponseTools(tools: unknown, choice: unknown, parallel: boolean): ResponseTools {
  if (!isAbsent(tools) && !Array.isArray(tools)) throw wrongType('tools', 'an array');
  const offered = (tools ?? []).map(readTool);
  const callable = offered.flatMap(({ tool }) => tool ?? []);
  const types = new Set(offered.map(({ type }) => type));
  const { allowed, mode, forcesSearch } = readChoice(choice ?? 'auto', callable, types);
  return {
    use: { offered: offered.length === 0 ? undefined : tools, allowed, mode, parallel },
    forcesSearch,
    shown: { tools: offered.map(({ shown }) => shown), tool_choice: choice ?? 'auto' },
  };
}

interface OfferedTool {
  type: string;
  /** The tool to call; undefined for the vendor's own tools. */
  tool: Tool | undefined;
  shown: object;
}

function readTool(sent: unknown, index: number): OfferedTool {
  const path = `tools[${index}]`;
  if (!isObject(sent)) throw wrongType(path, 'an object');
  const type = requiredText(sent, 'type', path);
  if (type === 'function') return { type, ...readFunction(sent, path) };
  if (type === 'custom') return { type, ...readCustom(sent, path) };
  const members = Object.hasOwn(hostedTools, type) ? hostedTools[type] : undefined;
  if (members === undefined) {
    throw unsupportedValue(`${path}.type`, type, ['function', 'custom', ...Object.keys(hostedTools)]);
  }
  const missing = members.find((name) => isAbsent(sent[name]));
  if (missing !== undefined) throw missingMember(`${path}.${missing}`);
  return { type, tool: undefined, shown: sent };
}

function readFunction(sent: JsonObject, path: string): Omit<OfferedTool, 'type'> {
  const name = readName(sent, path);
  if (!isAbsent(sent.parameters) && !isObject(sent.parameters)) throw wrongType(`${path}.parameters`, 'an object');
  if (!isAbsent(sent.strict) && typeof sent.strict !== 'boolean') throw wrongType(`${path}.strict`, 'a boolean');
  const parameters = argumentsSchema(sent.parameters);
  // Unlike in chat, a function is strict unless its request says otherwise.
  const shown = { description: null, ...sent, parameters: sent.parameters ?? null, strict: sent.strict ?? true };
  return { tool: { kind: 'function', name, parameters, inputPattern: undefined }, shown };
}

function readCustom(sent: JsonObject, path: string): Omit<OfferedTool, 'type'> {
  const name = readName(sent, path);
  const format = sent.format ?? { type: 'text' };
  if (!isObject(format)) throw wrongType(`${path}.format`, 'an object');
  const formatType = requiredText(format, 'type', `${path}.format`);
  if (formatType !== 'text' && formatType !== 'grammar') {
    throw unsupportedValue(`${path}.format.type`, formatType, ['text', 'grammar']);
  }
  let inputPattern: string | undefined;
  if (formatType === 'grammar') {
    const syntax = requiredText(format, 'syntax', `${path}.format`);
    if (syntax !== 'lark' && syntax !== 'regex') {
      throw unsupportedValue(`${path}.format.syntax`, syntax, ['lark', 'regex']);
    }
    const definition = requiredText(format, 'definition', `${path}.format`);
    if (syntax === 'regex') inputPattern = definition;
  }
  return { tool: { kind: 'custom', name, parameters: undefined, inputPattern }, shown: { ...sent, format } };
}

function readName(sent: JsonObject, path: string): string {
  const name = requiredText(sent, 'name', path);
  if (/^[a-zA-Z0-9_-]{1,128}$/.test(name)) return name;
  const param = `${path}.name`;
  const message = `Invalid '${param}': expected 1 to 128 letters, digits, underscores and hyphens.`;
  throw new WireError(400, message, { code: 'invalid_value', param });
}

type Choice = Pick<ToolUse, 'allowed' | 'mode'> & { forcesSearch: boolean };

function readChoice(choice: unknown, callable: readonly Tool[], types: ReadonlySet<string>): Choice {
  if (choice === 'none') return { allowed: [], mode: 'none', forcesSearch: false };
  if (choice === 'auto') return mayCall(callable);
  if (choice === 'required') return mustUse(callable, types);
  if (!isObject(choice)) {
    throw invalidParameter('tool_choice', "'tool_choice' must be none, auto, required or an object that names a tool.");
  }
  const type = requiredText(choice, 'type', 'tool_choice');
  if (type === 'allowed_tools') {
    const mode = requiredText(choice, 'mode', 'tool_choice');
    if (mode !== 'auto' && mode !== 'required') {
      throw unsupportedValue('tool_choice.mode', mode, ['auto', 'required']);
    }
    if (!Array.isArray(choice.tools)) throw wrongType('tool_choice.tools', 'an array');
    const named = choice.tools.map((tool, index) => chosenTool(tool, `tool_choice.tools[${index}]`, callable, types));
    const allowed = named.filter((tool) => typeof tool !== 'string');
    return mode === 'auto'
      ? mayCall(allowed)
      : mustUse(allowed, new Set(named.filter((tool) => typeof tool === 'string')));
  }
  const chosen = chosenTool(choice, 'tool_choice', callable, types);
  return typeof chosen === 'string' ? mustUse([], new Set([chosen])) : mustUse([chosen], new Set());
}

function mayCall(allowed: readonly Tool[]): Choice {
  return { allowed, mode: allowed.length === 0 ? 'none' : 'auto', forcesSearch: false };
}

function mustUse(allowed: readonly Tool[], types: ReadonlySet<string>): Choice {
  if (allowed.length > 0) return { allowed, mode: 'required', forcesSearch: false };
  if ([...types].some((type) => type.startsWith('web_search'))) return { allowed, mode: 'none', forcesSearch: true };
  throw invalidParameter(
    'tool_choice',
    "'tool_choice' asks for a tool, and no tool is offered that the sandbox can use.",
  );
}

/** The function or custom tool that a choice names, or the type of the vendor's own tool. */
function chosenTool(
  choice: unknown,
  path: string,
  callable: readonly Tool[],
  types: ReadonlySet<string>,
): Tool | string {
  if (!isObject(choice)) throw wrongType(path, 'an object');
  const type = requiredText(choice, 'type', path);
  if (type === 'function' || type === 'custom') {
    const name = requiredText(choice, 'name', path);
    const tool = callable.find((offered) => offered.kind === type && offered.name === name);
    if (tool !== undefined) return tool;
    throw invalidParameter(path, `Tool choice '${name.slice(0, 200)}' not found in 'tools' parameter.`);
  }
  if (types.has(type)) return type;
  throw invalidParameter(path, `Tool choice '${type.slice(0, 200)}' not found in 'tools' parameter.`);
}
