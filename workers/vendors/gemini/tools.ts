import type { ChatRequest } from '../../../shared/capabilities/chat.ts';
import { flatToolName } from '../../../shared/capabilities/flat-tool-name.ts';
import type { ApiError } from '../../../shared/errors.ts';
import { DefinitionsRoom, withLoneReferences } from '../schema-references.ts';
import type { JsonObject } from '../support/json-object.ts';
import { unsupportedField } from '../support/unsupported-field.ts';

/**
 * The names that Gemini takes for functions: unlike OpenAI's they begin with no digit and no dash. Names that others are turned into,
 * such as `_21st`, are not among them, and are turned into further ones.
 */
const ownName = /^(?!_+[\d-])[a-zA-Z_][\w.:-]{0,63}$/;

/** A function's name as Gemini takes it, such as that of a tool of an MCP server: `_21st_magic_component_builder`. */
export function geminiName(name: string): string {
  return ownName.test(name) ? name : flatToolName(undefined, `_${name}`);
}

/** The caller's names of tools by those that Gemini knows them under, where these differ. */
export function callersNames({ tools = [] }: Pick<ChatRequest, 'tools'>): ReadonlyMap<string, string> {
  const names = tools.flatMap((tool) => (tool.type === 'function' ? [tool.function.name] : []));
  return new Map(names.map((name) => [geminiName(name), name] as const).filter(([own, name]) => own !== name));
}

type Tools = Pick<ChatRequest, 'tools' | 'tool_choice'>;
type Choice = Exclude<NonNullable<Tools['tool_choice']>, string>;

/**
 * `tools` and `toolConfig` (https://ai.google.dev/api/caching#Tool). A choice among allowed tools that leaves the model free is
 * the mode VALIDATED, and so are strict functions: this mode holds calls to the functions' schemas.
 * @throws ApiError 400 naming a tool that is not a function.
 */
export function toGeminiTools({ tools = [], tool_choice: choice }: Tools): JsonObject {
  if (tools.length === 0) return {};
  const room = new DefinitionsRoom();
  const functionDeclarations = tools.map((tool, index) => {
    if (tool.type !== 'function') throw notAFunction(`tools[${index}].type`);
    const { name, description, parameters } = tool.function;
    return {
      name: geminiName(name),
      ...(description !== undefined && { description }),
      // The type, which OpenAI makes optional, is required.
      ...(parameters !== undefined && {
        parametersJsonSchema: withLoneReferences({ type: 'object', ...parameters }, room),
      }),
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
      return { mode: 'ANY', allowedFunctionNames: [geminiName(choice.function.name)] };
    case 'custom':
      throw notAFunction('tool_choice.type');
    case 'allowed_tools': {
      const { mode, tools } = choice.allowed_tools;
      const names = tools.map(({ function: named }, index) => {
        const name = (named as { name?: unknown } | undefined)?.name;
        if (typeof name !== 'string') throw notAFunction(`tool_choice.allowed_tools.tools[${index}]`);
        return geminiName(name);
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
