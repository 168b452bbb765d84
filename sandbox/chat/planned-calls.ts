import { exampleInstance, SchemaError } from '../json-schema/instance.ts';
import { patternTexts } from '../json-schema/pattern-text.ts';
import { textStart } from '../tokens.ts';
import { WireError } from '../wire-error.ts';
import { endsWithToolResult, lastUserText } from './chat-message.ts';
import type { ChatRequest } from './chat-request.ts';
import { holdsTextDirective } from './text-answer.ts';
import type { Tool } from './tool-use.ts';

/** A tool to call, and its arguments (JSON text) or, for a custom tool, its input. */
export interface PlannedCall {
  tool: Tool;
  input: string;
}

/**
 * The tools this request is answered with; none means text. In this order: the directive `TOOL:<name> {json}`, a tool the
 * request requires, any other directive (text), the tools whose names contain words of the user's last text.
 */
export function planCalls(request: ChatRequest): readonly PlannedCall[] {
  const { allowed, mode, parallel } = request.tools;
  if (mode === 'none') return [];
  const answersResult = endsWithToolResult(request.messages);
  const text = lastUserText(request.messages);
  const directed = answersResult ? [] : readDirectives(text, allowed);
  if (directed.length > 0) return parallel ? directed : directed.slice(0, 1);
  const named = toolsNamedIn(text, allowed);
  if (mode === 'required') return [named[0] ?? (allowed[0] as Tool)].map((tool) => withExampleInput(tool, text));
  if (answersResult || holdsTextDirective(text)) return [];
  return (parallel ? named : named.slice(0, 1)).map((tool) => withExampleInput(tool, text));
}

function readDirectives(text: string, tools: readonly Tool[]): PlannedCall[] {
  const calls: PlannedCall[] = [];
  for (const match of text.matchAll(/\bTOOL:(\S+)[ \t]*/g)) {
    const tool = tools.find((offered) => offered.name === match[1]);
    if (tool === undefined) continue;
    const rest = text.slice(match.index + match[0].length);
    const json = leadingJsonObject(rest);
    if (tool.kind === 'custom') calls.push({ tool, input: rest.split('\n', 1)[0] as string });
    else calls.push(json === undefined ? withExampleInput(tool, text) : { tool, input: json });
  }
  return calls;
}

/** The JSON object at the start of a text, exactly as written. */
function leadingJsonObject(text: string): string | undefined {
  if (!text.startsWith('{')) return undefined;
  let depth = 0;
  let inString = false;
  for (let index = 0; index < text.length; index += 1) {
    const character = text[index];
    if (inString) {
      if (character === '\\') index += 1;
      else if (character === '"') inString = false;
    } else if (character === '"') inString = true;
    else if (character === '{') depth += 1;
    else if (character === '}') depth -= 1;
    if (depth === 0) return isJson(text.slice(0, index + 1)) ? text.slice(0, index + 1) : undefined;
  }
  return undefined;
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

/**
 * The tools with a word of their name in the text. Words shared by several tools (`get_weather`, `get_time`) are weak: they
 * count only if no tool is named by a word unique to it.
 */
function toolsNamedIn(text: string, tools: readonly Tool[]): readonly Tool[] {
  if (tools.length === 0 || text === '') return [];
  const spoken = new Set(text.toLowerCase().match(/[\p{L}\p{N}]+/gu));
  const namesByWord = new Map<string, number>();
  for (const tool of tools) {
    for (const word of nameWords(tool.name)) namesByWord.set(word, (namesByWord.get(word) ?? 0) + 1);
  }
  const matches = (tool: Tool, maximum: number) =>
    nameWords(tool.name).some((word) => spoken.has(word) && (namesByWord.get(word) as number) <= maximum);
  const distinct = tools.filter((tool) => matches(tool, 1));
  return distinct.length > 0 ? distinct : tools.filter((tool) => matches(tool, tools.length));
}

/** `get_weather` and `getWeather` give the words get and weather (and the whole name). */
function nameWords(name: string): string[] {
  const words = name.replace(/(\p{Ll}|\p{N})(\p{Lu})/gu, '$1 $2').match(/[\p{L}\p{N}]+/gu) ?? [];
  return [...new Set([name, ...words].map((word) => word.toLowerCase()))];
}

function withExampleInput(tool: Tool, text: string): PlannedCall {
  if (tool.kind === 'custom') return { tool, input: exampleCustomInput(tool, text) };
  try {
    return { tool, input: JSON.stringify(exampleInstance(tool.parameters)) };
  } catch (error) {
    if (!(error instanceof SchemaError)) throw error;
    throw new WireError(400, `Invalid schema for function '${tool.name}': ${error.message}`, {
      param: 'tools',
      code: 'invalid_function_parameters',
    });
  }
}

function exampleCustomInput(tool: Tool, text: string): string {
  if (tool.inputPattern === undefined) return textStart(text, 200);
  for (const candidate of patternTexts(tool.inputPattern)) return candidate;
  throw new WireError(400, `The grammar of the custom tool '${tool.name}' cannot be followed.`, { param: 'tools' });
}
