import type { ChatRequest } from '../../../shared/capabilities/chat.ts';
import type { ApiError } from '../../../shared/errors.ts';
import type { JsonObject } from '../support/json-object.ts';
import { unsupportedField } from '../support/unsupported-field.ts';

type Tools = Pick<ChatRequest, 'tools' | 'tool_choice'>;
type Choice = Exclude<NonNullable<Tools['tool_choice']>, string>;

/**
 * `tools` and `toolConfig` (https://ai.google.dev/api/caching#Tool). A choice among allowed tools that leaves the model free is
 * the mode VALIDATED, and so are strict functions: this mode holds calls to the functions' schemas.
 * @throws ApiError 400 naming a tool that is not a function.
 */
export function toGeminiTools({ tools = [], tool_choice: choice }: Tools): JsonObject {
  if (tools.length === 0) return {};
  const functionDeclarations = tools.map((tool, index) => {
    if (tool.type !== 'function') throw notAFunction(`tools[${index}].type`);
    const { name, description, parameters } = tool.function;
    return {
      name,
      ...(description !== undefined && { description }),
      // The type, which OpenAI makes optional, is required.
      ...(parameters !== undefined && { parametersJsonSchema: { type: 'object', ...parameters } }),
    };
  });
  const isStrict = tools.some((tool) => tool.type === 'function' && tool.function.strict === true);
  const config = callingConfig(choice, isStrict);
  return {
    tools: [{ functionDeclarations }],
    ...(config !== undefined && { toolConfig: { functionCallingConfig: config } }),
  };
}

function callingConfig(choice: Tools['tool_choice'], isStrict: boolean): JsonObject | undefined {
  switch (choice) {
    case undefined:
      return isStrict ? { mode: 'VALIDATED' } : undefined;
    case 'auto':
      return { mode: isStrict ? 'VALIDATED' : 'AUTO' };
    case 'none':
      return { mode: 'NONE' };
    case 'required':
      return { mode: 'ANY' };
    default:
      return chosenConfig(choice);
  }
}

function chosenConfig(choice: Choice): JsonObject {
  switch (choice.type) {
    case 'function':
      return { mode: 'ANY', allowedFunctionNames: [choice.function.name] };
    case 'custom':
      throw notAFunction('tool_choice.type');
    case 'allowed_tools': {
      const { mode, tools } = choice.allowed_tools;
      const names = tools.map(({ function: named }, index) => {
        const name = (named as { name?: unknown } | undefined)?.name;
        if (typeof name !== 'string') throw notAFunction(`tool_choice.allowed_tools.tools[${index}]`);
        return name;
      });
      // An empty list would allow all.
      if (names.length === 0) return { mode: 'NONE' };
      return { mode: mode === 'required' ? 'ANY' : 'VALIDATED', allowedFunctionNames: names };
    }
  }
}

function notAFunction(param: string): ApiError {
  return unsupportedField(param, "the model's vendor has only functions");
}
