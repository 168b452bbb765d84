import { encryptedReasoning, hostedCalls } from '../../../shared/capabilities/response.ts';
import type { RequestItem } from '../../../shared/capabilities/response-items.ts';
import type { ResponseRequest } from '../../../shared/capabilities/response-request.ts';
import { callableTools, chosenTools, type ResponseTool } from '../../../shared/capabilities/response-tools.ts';
import { responseFieldNames } from './response-chat-fields.ts';

/** A feature that a chat lacks: the parameter, and why. */
export interface ChatRefusal {
  readonly param: string;
  readonly reason: string;
}

/** Chat fields that a response has in another form, which it repeats to its caller. */
const movedFields = ['response_format', 'reasoning_effort', 'verbosity'];

/** Returns the first parameter that a chat cannot stand in for, if any: a vendor with the Responses API judges it itself. */
export function refusedByChat(request: ResponseRequest): ChatRefusal | undefined {
  const { context_management: management, input } = request;
  const moved = movedFields.find((name) => request[name] != null);
  if (moved !== undefined) return { param: moved, reason: `in a response it is '${responseFieldNames[moved]}'` };
  if (management != null && management.length > 0) {
    return { param: 'context_management', reason: 'it does not compact conversations' };
  }
  return unknownValue(request) ?? refusedChoice(request) ?? (Array.isArray(input) ? refusedItem(input) : undefined);
}

/**
 * Values of OpenAI's Response object. A vendor with the Responses API validates them itself; over a chat only this check
 * does, and the response repeats them.
 */
const responseValues: readonly (readonly [param: string, read: (request: ResponseRequest) => unknown, string[]])[] = [
  [
    'service_tier',
    (request) => request.service_tier,
    ['auto', 'default', 'flex', 'scale', 'priority', 'fast', 'ultrafast'],
  ],
  ['prompt_cache_retention', (request) => request.prompt_cache_retention, ['in_memory', '24h']],
  ['reasoning.context', ({ reasoning }) => reasoning?.context, ['auto', 'current_turn', 'all_turns']],
  [
    'reasoning.effort',
    ({ reasoning }) => reasoning?.effort,
    ['none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max'],
  ],
  ['text.verbosity', ({ text }) => text?.verbosity, ['low', 'medium', 'high']],
];

function unknownValue(request: ResponseRequest): ChatRefusal | undefined {
  for (const [param, read, values] of responseValues) {
    const value = read(request);
    if (value != null && !values.includes(String(value))) return { param, reason: `it takes ${values.join(', ')}` };
  }
  return undefined;
}

/** A choice is refused when no tool remains that it may mean. */
function refusedChoice({ tools, tool_choice: choice }: ResponseRequest): ChatRefusal | undefined {
  const insists = choice === 'required' || typeof choice === 'object';
  if (!insists || choice === null) return undefined;
  const offered = callableTools(choice === 'required' ? (tools ?? []) : chosenTools(choice));
  if (offered.length > 0 || chosenTools(choice).some(isNamespace)) return undefined;
  return { param: 'tool_choice', reason: 'it has functions and custom tools only, and none of them is chosen' };
}

function isNamespace({ type }: ResponseTool): boolean {
  return type === 'namespace';
}

/** Types of items that a chat has in another form. */
const chatItems = new Set([
  'message',
  'function_call',
  'function_call_output',
  'custom_tool_call',
  'custom_tool_call_output',
  'reasoning',
  'item_reference',
]);

function refusedItem(input: readonly RequestItem[]): ChatRefusal | undefined {
  for (const [index, { type, content, output }] of input.entries()) {
    const param = `input[${index}]`;
    if (type != null && !chatItems.has(type) && !hostedCalls.has(type)) {
      return { param, reason: 'it does not know items of this type' };
    }
    for (const [name, parts] of [
      ['content', content],
      ['output', output],
    ] as const) {
      const at = Array.isArray(parts) ? parts.findIndex(isKeptElsewhere) : -1;
      if (at >= 0) return { param: `${param}.${name}[${at}]`, reason: 'it takes images as URLs and files as data' };
    }
  }
  return undefined;
}

function isKeptElsewhere(part: { readonly [field: string]: unknown }): boolean {
  return part.file_id != null || part.file_url != null;
}

const includedOverChat: ReadonlySet<string> = new Set(['message.output_text.logprobs', encryptedReasoning]);

/** The fields of a request that a chat ignores, hosted tools and their calls by their types. */
export function ignoredByChat(request: ResponseRequest): string[] {
  const { input, tools, include, reasoning, stream_options: options } = request;
  const hints = ['max_tool_calls', 'client_metadata'].filter((name) => request[name] != null);
  const reasoningHints = ['context', 'mode'].filter((name) => reasoning?.[name] != null);
  const hosted = (tools ?? []).filter((tool) => !['function', 'custom', 'namespace'].includes(tool.type));
  const calls = (Array.isArray(input) ? input : []).filter(({ type }) => type != null && hostedCalls.has(type));
  return [
    ...hints,
    ...(request.truncation === 'auto' ? ['truncation'] : []),
    ...reasoningHints.map((name) => `reasoning.${name}`),
    ...(include?.some((name) => !includedOverChat.has(name)) ? ['include'] : []),
    ...(options?.include_obfuscation === true ? ['stream_options.include_obfuscation'] : []),
    ...new Set([...hosted, ...calls].map(({ type }) => headerWord(String(type)))),
  ];
}

/** Types are the caller's text, and must not break the header. */
function headerWord(type: string): string {
  return /^[\w.-]+$/.test(type) ? type : 'tools';
}
