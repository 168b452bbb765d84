import type { ChatRequest } from '../../../shared/capabilities/chat.ts';
import { isObject, type JsonObject } from '../support/json-object.ts';
import { unsupportedField } from '../support/unsupported-field.ts';
import { cacheMark } from './content.ts';
import { toAnthropicSchema } from './schema.ts';

type ToolFields = Pick<ChatRequest, 'tools' | 'tool_choice' | 'parallel_tool_calls'>;

/**
 * Tools and the choice among them (https://docs.anthropic.com/en/docs/agents-and-tools/tool-use/implement-tool-use). If only some
 * tools are allowed, only those are sent; whether calls may be parallel is part of Anthropic's choice. `strict: false` is the
 * default, and not sent: Bedrock refuses the field for most models, and OpenAI's agents always set it.
 * @param takesStrict `false` for a model that refuses `strict` of its tools
 * @throws ApiError 400 for tools other than functions.
 */
export function toAnthropicTools(
  { tools, tool_choice: choice, parallel_tool_calls: parallel }: ToolFields,
  takesStrict = true,
): JsonObject {
  if (tools === undefined || tools.length === 0) return {};
  const all = tools.map((tool, index): JsonObject => {
    if (tool.type !== 'function') throw unsupportedField(`tools[${index}].type`, 'the model takes functions only');
    const { name, description, parameters } = tool.function;
    // A hint: the call works without it.
    const isStrict = takesStrict && tool.function.strict === true;
    // The type, which OpenAI makes optional, is required.
    const schema = { type: 'object', ...(parameters ?? { properties: {} }) };
    return {
      name,
      ...(description !== undefined && { description }),
      input_schema: isStrict ? toAnthropicSchema(schema) : schema,
      ...(isStrict && { strict: true }),
      ...cacheMark(tool),
    };
  });
  const allowed = allowedNames(choice);
  // None of them is allowed: no list, or an empty one, would be refused, or allow all.
  if (allowed?.size === 0) return { tools: all, tool_choice: choiceOfMode.none };
  const chosen = choice === undefined ? undefined : toAnthropicChoice(choice);
  const oneByOne = parallel === false && chosen?.type !== 'none';
  return {
    tools: allowed === undefined ? all : all.filter(({ name }) => allowed.has(name)),
    ...(oneByOne && { tool_choice: { type: 'auto', ...chosen, disable_parallel_tool_use: true } }),
    ...(!oneByOne && chosen && { tool_choice: chosen }),
  };
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
