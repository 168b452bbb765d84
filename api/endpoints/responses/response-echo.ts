import type { ResponseRequest } from '../../../shared/capabilities/response-request.ts';
import type { ResponseTool } from '../../../shared/capabilities/response-tools.ts';

/**
 * The fields of OpenAI's `Response` object that repeat its request, with OpenAI's defaults for missing ones.
 * https://platform.openai.com/docs/api-reference/responses/object
 */
export function responseEcho(request: ResponseRequest): Record<string, unknown> {
  const { text, reasoning, tools } = request;
  return {
    background: request.background ?? false,
    frequency_penalty: request.frequency_penalty ?? 0,
    instructions: request.instructions ?? null,
    max_output_tokens: request.max_output_tokens ?? null,
    max_tool_calls: request.max_tool_calls ?? null,
    metadata: request.metadata ?? {},
    parallel_tool_calls: request.parallel_tool_calls ?? true,
    presence_penalty: request.presence_penalty ?? 0,
    previous_response_id: request.previous_response_id ?? null,
    prompt_cache_key: request.prompt_cache_key ?? null,
    prompt_cache_retention: request.prompt_cache_retention ?? null,
    reasoning: {
      ...reasoning,
      effort: reasoning?.effort ?? null,
      summary: reasoning?.summary ?? reasoning?.generate_summary ?? null,
    },
    safety_identifier: request.safety_identifier ?? null,
    service_tier: request.service_tier ?? 'auto',
    store: request.store ?? true,
    temperature: request.temperature ?? 1,
    text: { ...text, format: text?.format ?? { type: 'text' }, verbosity: text?.verbosity ?? 'medium' },
    tool_choice: request.tool_choice ?? 'auto',
    tools: (tools ?? []).map(shownTool),
    top_logprobs: request.top_logprobs ?? 0,
    top_p: request.top_p ?? 1,
    truncation: request.truncation ?? 'disabled',
    user: request.user ?? null,
  };
}

/**
 * Shows all fields of functions in OpenAI's object, which are strict by default, the format of custom tools, which is text by
 * default, and no secrets of MCP servers.
 */
function shownTool(tool: ResponseTool): ResponseTool {
  if (tool.type === 'mcp') return withoutSecrets(tool);
  if (tool.type === 'custom') return { ...tool, format: tool.format ?? { type: 'text' } };
  if (tool.type !== 'function') return tool;
  return {
    ...tool,
    description: tool.description ?? null,
    parameters: tool.parameters ?? null,
    strict: tool.strict ?? true,
  };
}

/** What OpenAI shows instead of a secret. */
const redacted = '<redacted>';

/** An MCP server's tool as OpenAI shows it: everybody with a key of the account may read a stored response. */
function withoutSecrets({ authorization: _, headers, server_url: url, ...tool }: ResponseTool): ResponseTool {
  const names = typeof headers === 'object' && headers !== null ? Object.keys(headers) : [];
  return {
    ...tool,
    ...(names.length > 0 && { headers: Object.fromEntries(names.map((name) => [name, redacted])) }),
    // Some servers have the key in their path.
    ...(typeof url === 'string' && { server_url: URL.canParse(url) ? `${new URL(url).origin}/${redacted}` : redacted }),
  };
}
