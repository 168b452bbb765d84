import type { ChatRequest } from '../../../shared/capabilities/chat.ts';
import { isObject, type JsonObject } from '../support/json-object.ts';
import { unsupportedField } from '../support/unsupported-field.ts';
import { cacheMark } from './content.ts';
import { isWithinStrictLimits, toAnthropicSchema, withoutRootUnion } from './schema.ts';

/** The fields of a chat about its tools, and the format of its answer, whose schema shares the limits of strict tools. */
export type ToolFields = Pick<ChatRequest, 'tools' | 'tool_choice' | 'parallel_tool_calls' | 'response_format'>;

type FunctionTool = Extract<NonNullable<ChatRequest['tools']>[number], { type: 'function' }>;

/**
 * Tools and the choice among them (https://docs.anthropic.com/en/docs/agents-and-tools/tool-use/implement-tool-use). If only some
 * tools are allowed, only those are sent; whether calls may be parallel is part of Anthropic's choice. `strict: false` is the
 * default, and not sent: Bedrock refuses the field for most models, and OpenAI's agents always set it.
 * @param takesStrict `false` for a model that refuses `strict` of its tools
 * @throws ApiError 400 for tools other than functions.
 */
export function toAnthropicTools(
  { tools, tool_choice: choice, parallel_tool_calls: parallel, response_format: format }: ToolFields,
  takesStrict = true,
): JsonObject {
  if (tools === undefined || tools.length === 0) return {};
  const functions = tools.map((tool, index): FunctionTool => {
    if (tool.type !== 'function') throw unsupportedField(`tools[${index}].type`, 'the model takes functions only');
    return tool;
  });
  const allowed = allowedNames(choice);
  // None of them is allowed: no list, or an empty one, would be refused, or allow all.
  const allowsNone = allowed?.size === 0;
  const isSent = ({ function: { name } }: FunctionTool): boolean => allowsNone || allowed?.has(name) !== false;
  const sent = toTools(functions.filter(isSent), takesStrict, format);
  if (allowsNone) return { tools: sent, tool_choice: choiceOfMode.none };
  const chosen = choice === undefined ? undefined : toAnthropicChoice(choice);
  const oneByOne = parallel === false && chosen?.type !== 'none';
  return {
    tools: sent,
    ...(oneByOne && { tool_choice: { type: 'auto', ...chosen, disable_parallel_tool_use: true } }),
    ...(!oneByOne && chosen && { tool_choice: chosen }),
  };
}

function toTools(
  functions: readonly FunctionTool[],
  takesStrict: boolean,
  format: ToolFields['response_format'],
): JsonObject[] {
  // To be strict is a hint, without which the call works.
  const strict = takesStrict ? strictSchemas(functions, format) : new Map<FunctionTool, JsonObject>();
  return functions.map((tool) => {
    const { name, description } = tool.function;
    const schema = strict.get(tool);
    return {
      name,
      ...(description !== undefined && { description }),
      input_schema: schema ?? schemaOf(tool),
      ...(schema && { strict: true }),
      ...cacheMark(tool),
    };
  });
}

/** The schemas of the tools that are strict: none if together they are more than Anthropic takes. */
function strictSchemas(
  functions: readonly FunctionTool[],
  format: ToolFields['response_format'],
): ReadonlyMap<FunctionTool, JsonObject> {
  const strict = functions.filter((tool) => tool.function.strict === true);
  const schemas = new Map(strict.map((tool) => [tool, toAnthropicSchema(schemaOf(tool))]));
  const answer = format?.type === 'json_schema' ? toAnthropicSchema(format.json_schema.schema ?? {}) : {};
  return isWithinStrictLimits([...schemas.values()], answer) ? schemas : new Map();
}

/** A type, which OpenAI makes optional, is required. */
function schemaOf({ function: { parameters } }: FunctionTool): JsonObject {
  return withoutRootUnion({ type: 'object', ...(parameters ?? { properties: {} }) });
}

type ToolChoice = NonNullable<ToolFields['tool_choice']>;

const choiceOfMode = { none: { type: 'none' }, auto: { type: 'auto' }, required: { type: 'any' } } as const;

function toAnthropicChoice(choice: ToolChoice): JsonObject {
  if (typeof choice === 'string') return choiceOfMode[choice];
  switch (choice.type) {
    case 'function':
      return { type: 'tool', name: choice.function.name };
    case 'allowed_tools':
      return choiceOfMode[choice.allowed_tools.mode];
    case 'custom':
      throw unsupportedField('tool_choice', 'the model takes functions only');
  }
}

/** Whether the choice among the tools forces a call. */
export function mustCall({ tools, tool_choice: choice }: ToolFields): boolean {
  if (tools === undefined || tools.length === 0) return false;
  if (typeof choice !== 'object') return choice === 'required';
  return choice.type !== 'allowed_tools' || choice.allowed_tools.mode === 'required';
}

function allowedNames(choice: ToolFields['tool_choice']): ReadonlySet<unknown> | undefined {
  if (typeof choice !== 'object' || choice.type !== 'allowed_tools') return undefined;
  return new Set(choice.allowed_tools.tools.map((tool) => (isObject(tool.function) ? tool.function.name : undefined)));
}
