import type { ChatRequest } from '../../../shared/capabilities/chat.ts';
import { type AnthropicModelTraits, anthropicModelTraits } from '../../../shared/vendors/anthropic-models.ts';
import type { BedrockModelFamily } from '../../../shared/vendors/bedrock-models.ts';
import { isThinking, toAnthropicThinking } from '../anthropic/thinking.ts';
import { mustCall } from '../anthropic/tools.ts';
import { isObject, type JsonObject } from '../support/json-object.ts';
import { unsupportedField } from '../support/unsupported-field.ts';

/** The reasoning that a request allows the model. */
export interface ConverseReasoning {
  /** For `additionalModelRequestFields`. */
  readonly additional: JsonObject;
  /** For `outputConfig`. */
  readonly effort?: unknown;
  /** Whether Claude is asked to think. */
  readonly thinks: boolean;
}

/** Efforts of a chat by the names of the models that have fewer. */
const gptOssEfforts = efforts('low', 'low', 'high', 'high');
const gptEfforts = efforts('none', 'low', 'xhigh', 'max');
const novaEfforts = efforts('disabled', 'low', 'high', 'high');

function efforts(none: string, minimal: string, xhigh: string, max: string): Readonly<Record<string, string>> {
  return { none, minimal, low: 'low', medium: 'medium', high: 'high', xhigh, max };
}

/**
 * Translates an effort of a chat:
 *
 * - for Claude as at Anthropic; the effort itself is Converse's `outputConfig.effort`
 *   (https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_OutputConfig.html);
 * - for Nova 2 to `reasoningConfig` (https://docs.aws.amazon.com/nova/latest/nova2-userguide/extended-thinking.html);
 * - for OpenAI's models to their own parameter; the open ones always reason.
 *
 * `thinking` and `output_config` are Claude's own fields.
 * @throws ApiError 400 for an effort that the model does not have.
 */
export function toConverseReasoning(
  chat: ChatRequest,
  { model, family }: { readonly model: string; readonly family: BedrockModelFamily },
  followsThoughtlessCalls: boolean,
): ConverseReasoning {
  if (family === 'claude') return thinkingOf(chat, anthropicModelTraits(model), followsThoughtlessCalls);
  for (const name of ['thinking', 'output_config'] as const) {
    if (chat[name] != null) throw unsupportedField(name, 'only models of Anthropic have it');
  }
  const { reasoning_effort: asked } = chat;
  return { additional: asked == null ? {} : effortOf(asked, family), thinks: false };
}

function thinkingOf(
  chat: ChatRequest,
  traits: AnthropicModelTraits,
  followsThoughtlessCalls: boolean,
): ConverseReasoning {
  const maxTokens = chat.max_completion_tokens ?? chat.max_tokens ?? traits.maxOutput;
  const { thinking, effort } = toAnthropicThinking(chat, traits, {
    maxTokens,
    followsThoughtlessCalls,
    mustCall: mustCall(chat),
  });
  const { effort: _, ...config } = isObject(chat.output_config) ? chat.output_config : {};
  return {
    additional: {
      ...(thinking !== undefined && { thinking }),
      ...(Object.keys(config).length > 0 && { output_config: config }),
    },
    effort,
    thinks: isThinking({ thinking }),
  };
}

function effortOf(asked: string, family: BedrockModelFamily): JsonObject {
  switch (family) {
    case 'gpt':
      return { reasoning: { effort: known(asked, gptEfforts) } };
    case 'gpt-oss':
      return { reasoning_effort: known(asked, gptOssEfforts) };
    case 'nova-2': {
      const effort = known(asked, novaEfforts);
      const isOff = effort === 'disabled';
      return { reasoningConfig: isOff ? { type: 'disabled' } : { type: 'enabled', maxReasoningEffort: effort } };
    }
    default:
      // Who wants none gets what the model does by itself.
      if (asked === 'none') return {};
      throw unsupportedField('reasoning_effort', 'the model does not have it');
  }
}

function known(asked: string, names: Readonly<Record<string, string>>): string {
  const name = Object.hasOwn(names, asked) ? names[asked] : undefined;
  if (name === undefined) throw unsupportedField('reasoning_effort', `use one of ${Object.keys(names).join(', ')}`);
  return name;
}
