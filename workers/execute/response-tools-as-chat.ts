import { flatToolName } from '../../shared/capabilities/flat-tool-name.ts';
import { ApiError } from '../../shared/errors.ts';
import { isObject, type JsonObject } from '../vendors/support/json-object.ts';

interface ChatFunction {
  readonly type: 'function';
  readonly function: { readonly name: string; readonly [field: string]: unknown };
}

/** A tool of a Responses request, as offered to a chat. */
interface FlatTool {
  readonly namespace: string | undefined;
  readonly name: string;
  readonly chat: ChatFunction;
}

/** The tool-related fields of a Responses request, unparsed. */
interface ToolFields {
  readonly tools: unknown;
  readonly toolChoice: unknown;
  readonly parallelToolCalls: unknown;
}

/**
 * A chat's tool fields: every tool becomes a function, including custom ones and those in namespaces; hosted tools are left out.
 * Empty if no tool remains. @throws ApiError 400 for a choice without a remaining tool.
 */
export function toolFields({ tools, toolChoice, parallelToolCalls }: ToolFields): JsonObject {
  const flat = Array.isArray(tools) ? tools.flatMap((tool) => flatten(tool)) : [];
  const allowed = isObject(toolChoice) && toolChoice.type === 'allowed_tools' ? toolChoice : undefined;
  const offered = allowed === undefined ? flat : flat.filter(allowedBy(allowed.tools));
  const choice = allowed === undefined ? chatChoice(toolChoice, flat) : allowed.mode;
  if (offered.length === 0) {
    if (choice === 'required') throw notOffered();
    return {};
  }
  return {
    tools: offered.map(({ chat }) => chat),
    ...(choice != null && { tool_choice: choice }),
    ...(parallelToolCalls != null && { parallel_tool_calls: parallelToolCalls }),
  };
}

function flatten(tool: unknown, namespace?: string): readonly FlatTool[] {
  if (!isObject(tool)) return [];
  const name = String(tool.name);
  const flatName = flatToolName(namespace, name);
  switch (tool.type) {
    case 'function':
      return [{ namespace, name, chat: chatFunction(flatName, tool, tool.parameters, tool.strict) }];
    case 'custom':
      return [{ namespace, name, chat: chatFunction(flatName, tool, freeInput(tool.format)) }];
    case 'namespace':
      return Array.isArray(tool.tools) ? tool.tools.flatMap((inner) => flatten(inner, name)) : [];
    default:
      return [];
  }
}

function chatFunction(name: string, { description }: JsonObject, parameters: unknown, strict?: unknown): ChatFunction {
  return {
    type: 'function',
    function: {
      name,
      ...(description != null && { description }),
      ...(parameters != null && { parameters }),
      ...(strict != null && { strict }),
    },
  };
}

/** The parameters of the function that represents a custom tool: its free text, with the grammar in the description. */
function freeInput(format: unknown): JsonObject {
  const isGrammar = isObject(format) && format.type === 'grammar';
  const description = isGrammar
    ? `Text that follows this ${format.syntax} grammar:\n${format.definition}`
    : 'The input of the tool, free text.';
  return { type: 'object', properties: { input: { type: 'string', description } }, required: ['input'] };
}

/** Tells whether `allowed_tools` names a tool: itself, or its namespace. It may name thousands, of thousands. */
function allowedBy(allowed: unknown): (tool: FlatTool) => boolean {
  const [namespaces, names] = [new Set<unknown>(), new Set<string>()];
  for (const { type, name, namespace } of Array.isArray(allowed) ? allowed.filter(isObject) : []) {
    if (type === 'namespace') namespaces.add(name);
    else if (isCallable(type)) names.add(JSON.stringify([name, namespace ?? null]));
  }
  return ({ name, namespace }) =>
    names.has(JSON.stringify([name, null])) ||
    (namespace !== undefined && (namespaces.has(namespace) || names.has(JSON.stringify([name, namespace]))));
}

/** A tool in a namespace may be named without it. */
function isNamed({ type, namespace, name }: JsonObject, tool: FlatTool): boolean {
  return isCallable(type) && name === tool.name && (namespace == null || namespace === tool.namespace);
}

function isCallable(type: unknown): boolean {
  return type === 'function' || type === 'custom';
}

function chatChoice(choice: unknown, tools: readonly FlatTool[]): unknown {
  if (!isObject(choice)) return choice;
  const named = tools.filter((tool) => isNamed(choice, tool));
  const chosen = named.find(({ namespace }) => namespace === undefined) ?? named[0];
  if (chosen === undefined) throw notOffered();
  return { type: 'function', function: { name: chosen.chat.function.name } };
}

function notOffered(): ApiError {
  return new ApiError('invalid_request_error', "This model has no tool of the kind that 'tool_choice' asks for.", {
    param: 'tool_choice',
  });
}
