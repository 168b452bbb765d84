import { z } from 'zod';
import type { BrokenRule } from './chat.ts';
import { compiledOnUse } from './compiled-on-use.ts';
import { byTypeName, dispatched } from './dispatched.ts';
import { fieldsOf, objectsOf, textOf } from './vendor-values.ts';

// The names that OpenAI accepts for functions of this API, longer than those of chats.
const toolName = z.string().regex(/^[a-zA-Z0-9_-]{1,128}$/, 'use 1 to 128 of a-z, A-Z, 0-9, underscore and dash');
const description = z.string().nullish();

const functionTool = z.looseObject({
  type: z.literal('function'),
  name: toolName,
  description,
  parameters: z.looseObject({}).nullish(),
  strict: z.boolean().nullish(),
});
const customTool = z.looseObject({
  type: z.literal('custom'),
  name: toolName,
  description,
  format: z
    .discriminatedUnion('type', [
      z.looseObject({ type: z.literal('text') }),
      z.looseObject({ type: z.literal('grammar'), syntax: z.string(), definition: z.string() }),
    ])
    .nullish(),
});
const namespaceTool = z.looseObject({
  type: z.literal('namespace'),
  name: toolName,
  description,
  tools: z.array(z.discriminatedUnion('type', [functionTool, customTool])),
});

const toolOfType = byTypeName({
  function: compiledOnUse(functionTool),
  custom: compiledOnUse(customTool),
  namespace: compiledOnUse(namespaceTool),
});

/** Tools that the vendor runs, or that only some vendors know: the vendor validates their fields. */
const other = compiledOnUse(z.looseObject({ type: z.string().min(1).max(64) }));

/** A tool of a request; its fields depend on its type. */
export interface ResponseTool {
  readonly type: string;
  readonly [field: string]: unknown;
}

/** One entry of `tools`, after OpenAI's `Tool`. */
export const responseTool = dispatched<ResponseTool>(({ type }) => toolOfType(type) ?? other);

/** Fields in which vendors take the names of models, of a tool, a plugin or another field. */
const modelFields = ['model', 'models', 'fallbacks', 'allowed_models', 'analysis_models'];

/** Tools and plugins of OpenRouter that ask other models even if they name none: of its choice then. */
const asksOthers = /^(?:openrouter:)?(?:fusion|advisor|subagent)$/;

/**
 * The models that a tool names for its vendor to ask besides, such as that of images, and so of plugins and other fields of a request; a
 * list is of such. Empty names are those that only the vendor knows. Without any, nothing.
 */
export function namedModels(value: unknown): { readonly models?: readonly string[] } {
  const models = objectsOf(Array.isArray(value) ? value : [value]).flatMap(modelsOfEntry);
  return models.length === 0 ? {} : { models };
}

function modelsOfEntry(entry: Readonly<Record<string, unknown>>): string[] {
  const { type, id, parameters, gateway } = entry;
  // The latter is Vercel's gateway's: `providerOptions.gateway.models`.
  const places = [entry, fieldsOf(parameters), fieldsOf(gateway)];
  const models = places.flatMap((fields) => modelFields.flatMap((name) => fields[name] ?? [])).map(textOf);
  return [type, id].some((kind) => asksOthers.test(textOf(kind))) ? [...models, ''] : models;
}

const named = compiledOnUse(z.looseObject({ name: z.string().min(1), namespace: z.string().nullish() }));
const choiceOfType = byTypeName({
  function: named,
  custom: named,
  allowed_tools: compiledOnUse(
    z.looseObject({
      mode: z.enum(['auto', 'required']),
      tools: z.array(z.looseObject({ type: z.string() })).min(1),
    }),
  ),
});

/** `tool_choice`, after OpenAI's `ToolChoiceParam`. */
export const responseToolChoice = z.union([
  z.enum(['none', 'auto', 'required']),
  dispatched<ResponseTool>(({ type }) => choiceOfType(type) ?? other),
]);

export type ResponseToolChoice = z.infer<typeof responseToolChoice>;

/** A function or custom tool of a request, with or without a namespace. */
export interface CallableTool {
  readonly type: 'function' | 'custom';
  readonly namespace: string | undefined;
  readonly name: string;
}

/**
 * The tools that the caller runs itself, including those in namespaces.
 * @param tools tools that passed schema validation
 */
export function callableTools(tools: readonly ResponseTool[], namespace?: string): CallableTool[] {
  return tools.flatMap((tool): CallableTool[] => {
    const { type } = tool;
    const name = String(tool.name);
    if (type === 'namespace') return callableTools(tool.tools as readonly ResponseTool[], name);
    return type === 'function' || type === 'custom' ? [{ type, name, namespace }] : [];
  });
}

/** The tools that a choice names: the choice itself, or those of `allowed_tools`. */
export function chosenTools(choice: ResponseToolChoice | null | undefined): readonly ResponseTool[] {
  if (typeof choice !== 'object' || choice === null) return [];
  return choice.type === 'allowed_tools' ? (choice.tools as readonly ResponseTool[]) : [choice];
}

/** The violated rule between the tools and the tool choice, or undefined. */
export function brokenResponseToolRule(
  tools: readonly ResponseTool[],
  choice: ResponseToolChoice | null | undefined,
): BrokenRule | undefined {
  if (choice === 'required' && tools.length === 0) {
    return { path: ['tool_choice'], message: "it can be 'required' only where 'tools' are specified" };
  }
  const offered = typeof choice === 'object' && choice !== null ? namesOf(tools) : new Set<string>();
  const missing = chosenTools(choice).findIndex((entry) => !isOffered(offered, entry));
  if (missing < 0) return undefined;
  const isAllowed = typeof choice === 'object' && choice?.type === 'allowed_tools';
  const path = isAllowed ? ['tool_choice', 'tools', missing] : ['tool_choice', 'name'];
  return { path, message: "the tool it names is not among 'tools'" };
}

/** What a choice may call the tools, with and without their namespaces: a request may have a hundred thousand, and name each of them. */
function namesOf(tools: readonly ResponseTool[]): ReadonlySet<string> {
  const names = new Set<string>();
  for (const { type, name, namespace } of callableTools(tools)) {
    names.add(JSON.stringify([type, name]));
    if (namespace !== undefined) names.add(JSON.stringify([type, name, namespace]));
  }
  return names;
}

/** Only functions and custom tools are looked up by name; other choices belong to the vendor. */
function isOffered(offered: ReadonlySet<string>, { type, name, namespace }: ResponseTool): boolean {
  if (type !== 'function' && type !== 'custom') return true;
  return offered.has(JSON.stringify(namespace == null ? [type, name] : [type, name, namespace]));
}
