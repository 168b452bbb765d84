import {
  type BedrockModelFamily,
  hasCachePointsAnywhere,
  hasStrictTools,
} from '../../../shared/vendors/bedrock-models.ts';
import { type ToolFields, toAnthropicTools } from '../anthropic/tools.ts';
import { DefinitionsRoom, withoutReferences } from '../schema-references.ts';
import { isObject, type JsonObject } from '../support/json-object.ts';
import { cachePoint } from './turns.ts';

/** The tools of a request. */
export interface ConverseTools {
  /** Omitted if the model must call none. */
  readonly toolConfig?: (JsonObject & { readonly tools: readonly JsonObject[] }) | undefined;
  /** For `additionalModelRequestFields`. */
  readonly additional: JsonObject;
}

/**
 * Tools and the choice among them (https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_ToolConfiguration.html).
 * Converse does not support the choice of none: then no tools are offered. Sequential calls are a parameter of Claude's, which
 * joins Converse's own choice, and needs the type if there is no choice; for other models see ./chat.ts.
 * @throws ApiError 400 for tools other than functions.
 */
export function toConverseTools(
  chat: ToolFields,
  { model, family }: { readonly model: string; readonly family: BedrockModelFamily },
): ConverseTools {
  const { tools, tool_choice: given } = toAnthropicTools(chat, hasStrictTools(model));
  const { type, name, disable_parallel_tool_use: oneByOne } = isObject(given) ? given : {};
  if (!Array.isArray(tools) || type === 'none') return { additional: {} };
  const isForced = type === 'any' || type === 'tool';
  const isToldOneByOne = oneByOne === true && family === 'claude';
  const toolChoice = type === 'tool' ? { tool: { name } } : { any: {} };
  const room = new DefinitionsRoom();
  return {
    toolConfig: {
      tools: tools.flatMap((tool: JsonObject) => [
        { toolSpec: toToolSpec(tool, family, room) },
        ...(hasCachePointsAnywhere(family) ? cachePoint(tool, family) : []),
      ]),
      ...(isForced && { toolChoice }),
    },
    additional: isToldOneByOne ? { tool_choice: { ...(!isForced && { type }), disable_parallel_tool_use: true } } : {},
  };
}

function toToolSpec(
  { name, description, input_schema: schema, strict }: JsonObject,
  family: BedrockModelFamily,
  room: DefinitionsRoom,
): JsonObject {
  // Nova refuses definitions (https://github.com/zed-industries/zed/issues/28521).
  const isNovas = family === 'nova' || family === 'nova-2';
  return {
    name,
    // Converse refuses an empty one.
    ...(typeof description === 'string' && description.trim() !== '' && { description }),
    inputSchema: { json: isNovas && isObject(schema) ? withoutReferences(schema, room) : schema },
    ...(strict === true && { strict }),
  };
}
