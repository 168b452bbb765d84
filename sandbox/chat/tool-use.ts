import { isAbsent, isObject, type JsonObject } from '../json-value.ts';
import { invalidParameter } from '../wire-error.ts';

/** A tool the request offers. `legacy` tools come from `functions` and are answered as `function_call`. */
export interface Tool {
  kind: 'function' | 'custom' | 'legacy';
  name: string;
  /** JSON Schema of the arguments. */
  parameters: unknown;
  /** For a custom tool: the pattern its input must match, if its grammar is a regular expression. */
  inputPattern: string | undefined;
}

/** Which tools the answer may use, and whether it must. */
export interface ToolUse {
  /** All offered tools as sent: they are part of the prompt. */
  offered: unknown;
  /** The tools that may be called. */
  allowed: readonly Tool[];
  mode: 'none' | 'auto' | 'required';
  parallel: boolean;
}

const noTools: ToolUse = { offered: undefined, allowed: [], mode: 'none', parallel: false };

/**
 * Parses `tools`, `tool_choice`, `parallel_tool_calls`, and the older `functions` and `function_call`.
 * @throws WireError 400 naming the parameter, also for the choice of a tool that is not offered.
 */
export function readTools(body: JsonObject): ToolUse {
  if (isAbsent(body.tools) && !isAbsent(body.functions)) return readFunctions(body);
  const tools = readList(body.tools, 'tools').map(readTool);
  const choice = body.tool_choice;
  if (tools.length === 0) {
    if (isAbsent(choice) || choice === 'none' || choice === 'auto') return noTools;
    throw invalidParameter('tool_choice', "'tool_choice' is only allowed when 'tools' are specified.");
  }
  if (!isAbsent(body.parallel_tool_calls) && typeof body.parallel_tool_calls !== 'boolean') {
    throw invalidParameter('parallel_tool_calls', "'parallel_tool_calls' must be a boolean.");
  }
  return { offered: body.tools, parallel: body.parallel_tool_calls !== false, ...readChoice(choice, tools) };
}

function readFunctions(body: JsonObject): ToolUse {
  const tools = readList(body.functions, 'functions').map((tool, index) => {
    return readFunction(tool, `functions[${index}]`, 'legacy');
  });
  const choice = isObject(body.function_call) ? { type: 'function', function: body.function_call } : body.function_call;
  if (choice === 'required')
    throw invalidParameter('function_call', "'function_call' must be none, auto or an object.");
  return { offered: body.functions, parallel: false, ...readChoice(choice, tools, 'function_call') };
}

function readTool(tool: unknown, index: number): Tool {
  const path = `tools[${index}]`;
  if (isObject(tool) && tool.type === 'function') return readFunction(tool.function, `${path}.function`, 'function');
  if (!isObject(tool) || tool.type !== 'custom') {
    throw invalidParameter(`${path}.type`, `'${path}.type' must be function or custom.`);
  }
  const custom = isObject(tool.custom) ? tool.custom : {};
  const grammar = isObject(custom.format) && isObject(custom.format.grammar) ? custom.format.grammar : {};
  return {
    kind: 'custom',
    name: readName(custom, `${path}.custom`),
    parameters: undefined,
    inputPattern: grammar.syntax === 'regex' ? String(grammar.definition) : undefined,
  };
}

function readFunction(definition: unknown, path: string, kind: Tool['kind']): Tool {
  const object = isObject(definition) ? definition : {};
  const name = readName(object, path);
  if (!isAbsent(object.parameters) && !isObject(object.parameters)) {
    throw invalidParameter(`${path}.parameters`, `'${path}.parameters' must be a JSON Schema object.`);
  }
  return { kind, name, parameters: argumentsSchema(object.parameters), inputPattern: undefined };
}

/** The schema of a function's arguments: at OpenAI they are an object also if the schema names no type, or is left out. */
export function argumentsSchema(parameters: unknown): JsonObject {
  return { type: 'object', ...(isObject(parameters) && parameters) };
}

function readName(object: JsonObject, path: string): string {
  if (typeof object.name === 'string' && object.name !== '') return object.name;
  throw invalidParameter(`${path}.name`, `'${path}.name' is required and must be a string.`);
}

function readChoice(choice: unknown, tools: readonly Tool[], name = 'tool_choice'): Pick<ToolUse, 'allowed' | 'mode'> {
  if (isAbsent(choice)) return { allowed: tools, mode: 'auto' };
  if (choice === 'none' || choice === 'auto' || choice === 'required') return { allowed: tools, mode: choice };
  if (isObject(choice) && choice.type === 'allowed_tools' && isObject(choice.allowed_tools)) {
    const { mode, tools: names } = choice.allowed_tools;
    if (mode !== 'auto' && mode !== 'required') {
      throw invalidParameter(`${name}.allowed_tools.mode`, `'${name}.allowed_tools.mode' must be auto or required.`);
    }
    const allowed = readList(names, `${name}.allowed_tools.tools`).map((tool) => chosenTool(tool, tools, name));
    return { allowed, mode: allowed.length === 0 ? 'none' : mode };
  }
  return { allowed: [chosenTool(choice, tools, name)], mode: 'required' };
}

function chosenTool(choice: unknown, tools: readonly Tool[], param: string): Tool {
  const named = isObject(choice) ? (choice.function ?? choice.custom) : undefined;
  if (!isObject(named) || typeof named.name !== 'string') {
    throw invalidParameter(param, `'${param}' must be none, auto, required or an object that names a tool.`);
  }
  const tool = tools.find((offered) => offered.name === named.name);
  if (tool === undefined) throw invalidParameter(param, `'${param}' names a tool that is not among those offered.`);
  return tool;
}

function readList(value: unknown, name: string): readonly unknown[] {
  if (isAbsent(value)) return [];
  if (Array.isArray(value)) return value;
  throw invalidParameter(name, `'${name}' must be an array.`);
}
