import type { MessageInput, MessageTool } from '../../../shared/capabilities/message.ts';
import { invalidParameter } from '../../pipeline/request-fields.ts';
import { cacheMark, type MessageNotes } from './message-content.ts';

type ToolChoice = NonNullable<MessageInput['tool_choice']>;
type CustomTool = Extract<MessageTool, { input_schema: unknown }>;

/** Fields of a tool that are hints for Anthropic's model. */
const hintFields = ['input_examples', 'eager_input_streaming', 'allowed_callers'];

/** Anthropic's own search for tools, which finds the deferred ones on its servers: `tool_search_tool_bm25_20251119`. */
const ownSearch = /^tool_search_tool_/;

/**
 * Converts the tools of a request, and the tool choice, to chat fields. Tools defined (and mostly run) by Anthropic are
 * omitted. Deferred tools (`defer_loading`) are omitted, as at Anthropic, until a turn names them; but all of them are offered
 * if Anthropic's own search would find them, which is omitted: nothing else could.
 * @throws ApiError 400 if the choice forces a tool that is omitted or missing.
 */
export function toChatTools({ tools, messages, tool_choice: choice }: MessageInput, notes: MessageNotes): object {
  const every = [...(tools ?? []), ...addedTools(messages)];
  const isSearched = every.some(({ type }) => type != null && ownSearch.test(type));
  const named = !isSearched && every.some(isDeferred) ? namedTools(messages, choice) : undefined;
  const all = named === undefined ? every : every.filter((tool) => !isDeferred(tool) || named.has(tool.name));
  const offered = all.filter(isCustom);
  for (const tool of all) if (!isCustom(tool)) notes.ignored.add(`tools.${tool.type}`);
  for (const tool of every) cacheMark(tool, notes);
  const chosen = choice == null ? undefined : toChatChoice(choice, all, offered);
  if (offered.length === 0) return {};
  return {
    tools: offered.map((tool) => toChatTool(tool, notes)),
    ...(chosen !== undefined && { tool_choice: chosen }),
    ...(choice?.disable_parallel_tool_use === true && { parallel_tool_calls: false }),
  };
}

/** Tools that are defined in the turn that first offers them. */
function addedTools(messages: MessageInput['messages']): MessageTool[] {
  const changes = messages.flatMap(({ role, content }) => (role === 'system' && Array.isArray(content) ? content : []));
  return changes.flatMap((block) =>
    block.type === 'tool_addition' && block.tool.type === 'tool_definition' ? block.tool.definition : [],
  );
}

function isDeferred(tool: MessageTool): boolean {
  return tool.defer_loading === true;
}

/** The tools named by a `tool_reference`, a call or the choice. */
function namedTools(messages: MessageInput['messages'], choice: ToolChoice | null | undefined): Set<unknown> {
  const names = new Set<unknown>(choice?.type === 'tool' ? [choice.name] : []);
  for (const { content } of messages) {
    if (!Array.isArray(content)) continue;
    for (const block of content) {
      if (block.type === 'tool_use') names.add(block.name);
      else if (block.type === 'tool_addition' && block.tool.type === 'tool_reference') names.add(block.tool.name);
      else if (block.type === 'tool_result' && Array.isArray(block.content)) {
        for (const part of block.content) if (part.type === 'tool_reference') names.add(part.tool_name);
      }
    }
  }
  return names;
}

function isCustom(tool: MessageTool): tool is CustomTool {
  return tool.type == null || tool.type === 'custom';
}

function toChatTool(tool: CustomTool, notes: MessageNotes): object {
  const { name, description, input_schema: parameters, strict } = tool;
  for (const field of hintFields) if (tool[field] != null) notes.ignored.add(`tools.${field}`);
  return {
    type: 'function',
    function: { name, ...(description != null && { description }), parameters, ...(strict != null && { strict }) },
    ...cacheMark(tool, notes),
  };
}

function toChatChoice(choice: ToolChoice, all: readonly MessageTool[], offered: readonly CustomTool[]): unknown {
  switch (choice.type) {
    case 'auto':
    case 'none':
      return choice.type;
    case 'any':
      if (offered.length > 0) return 'required';
      throw invalidParameter(
        'tool_choice',
        "Invalid 'tool_choice': there is no tool among 'tools' that can be called here.",
      );
    case 'tool': {
      const { name } = choice;
      if (offered.some((tool) => tool.name === name)) return { type: 'function', function: { name } };
      const reason = all.some((tool) => tool.name === name)
        ? 'the tool it names is one of Anthropic’s own, which is not offered here'
        : "the tool it names is not among 'tools'";
      throw invalidParameter('tool_choice.name', `Invalid 'tool_choice.name': ${reason}.`);
    }
  }
}
