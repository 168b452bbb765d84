import { z } from 'zod';

/** The names that OpenAI accepts for functions, tools and schemas. */
export const toolName = z.string().regex(/^[a-zA-Z0-9_-]{1,64}$/, 'use 1 to 64 of a-z, A-Z, 0-9, underscore and dash');

const description = z.string().optional();
const jsonSchema = z.looseObject({});

/** One entry of `tools`, after OpenAI's `ChatCompletionTool` and `CustomToolChatCompletions`. */
export const tool = z.discriminatedUnion('type', [
  z.looseObject({
    type: z.literal('function'),
    function: z.looseObject({
      name: toolName,
      description,
      parameters: jsonSchema.optional(),
      strict: z.boolean().optional(),
    }),
  }),
  z.looseObject({
    type: z.literal('custom'),
    custom: z.looseObject({
      name: toolName,
      description,
      format: z
        .discriminatedUnion('type', [
          z.looseObject({ type: z.literal('text') }),
          z.looseObject({
            type: z.literal('grammar'),
            grammar: z.looseObject({ definition: z.string(), syntax: z.string() }),
          }),
        ])
        .optional(),
    }),
  }),
]);

const named = z.looseObject({ name: z.string() });

/** `tool_choice`, after OpenAI's `ChatCompletionToolChoiceOption`. */
export const toolChoice = z.union([
  z.enum(['none', 'auto', 'required']),
  z.discriminatedUnion('type', [
    z.looseObject({ type: z.literal('function'), function: named }),
    z.looseObject({ type: z.literal('custom'), custom: named }),
    z.looseObject({
      type: z.literal('allowed_tools'),
      allowed_tools: z.looseObject({ mode: z.enum(['auto', 'required']), tools: z.array(z.looseObject({})) }),
    }),
  ]),
]);

/** One entry of the legacy `functions`. */
export const legacyFunction = z.looseObject({ name: toolName, description, parameters: jsonSchema.optional() });

/** The legacy `function_call`. */
export const legacyFunctionCall = z.union([z.enum(['none', 'auto']), named]);

interface ToolFields {
  readonly tools?: z.infer<typeof tool>[] | undefined;
  readonly tool_choice?: z.infer<typeof toolChoice> | undefined;
  readonly functions?: z.infer<typeof legacyFunction>[] | undefined;
  readonly function_call?: z.infer<typeof legacyFunctionCall> | undefined;
}

/** A violated rule between request fields: its path and the problem. */
export interface BrokenRule {
  readonly path: (string | number)[];
  readonly message: string;
}

/** The first violated rule between the tools and the tool choice, or undefined. */
export function brokenToolRule(request: ToolFields): BrokenRule | undefined {
  const { tools = [], tool_choice: choice, functions = [], function_call: call } = request;
  if (choice !== undefined && tools.length === 0) {
    return { path: ['tool_choice'], message: "it is only allowed when 'tools' are specified" };
  }
  if (typeof choice === 'object') {
    const unknown = chosenNames(choice).find(({ type, name }) => !tools.some((entry) => isTool(entry, type, name)));
    if (unknown) return { path: unknown.path, message: "the tool it names is not among 'tools'" };
  }
  if (call !== undefined && functions.length === 0) {
    return { path: ['function_call'], message: "it is only allowed when 'functions' are specified" };
  }
  if (typeof call === 'object' && !functions.some((entry) => entry.name === call.name)) {
    return { path: ['function_call', 'name'], message: "the function it names is not among 'functions'" };
  }
  return undefined;
}

interface ChosenName {
  readonly type: string;
  readonly name: string;
  readonly path: (string | number)[];
}

function chosenNames(choice: Exclude<z.infer<typeof toolChoice>, string>): ChosenName[] {
  switch (choice.type) {
    case 'function':
      return [{ type: 'function', name: choice.function.name, path: ['tool_choice', 'function', 'name'] }];
    case 'custom':
      return [{ type: 'custom', name: choice.custom.name, path: ['tool_choice', 'custom', 'name'] }];
    case 'allowed_tools':
      return choice.allowed_tools.tools.flatMap((entry, index) => {
        const path = ['tool_choice', 'allowed_tools', 'tools', index];
        // Only functions and custom tools are referred to by name; other kinds belong to the vendor.
        for (const type of ['function', 'custom']) {
          const detail = entry[type];
          if (entry.type === type && isNamed(detail)) return [{ type, name: detail.name, path }];
        }
        return [];
      });
  }
}

function isNamed(value: unknown): value is { name: string } {
  return typeof value === 'object' && value !== null && 'name' in value && typeof value.name === 'string';
}

function isTool(entry: z.infer<typeof tool>, type: string, name: string): boolean {
  return entry.type === type && (entry.type === 'function' ? entry.function.name : entry.custom.name) === name;
}
