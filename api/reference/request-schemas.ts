import { z } from 'zod';
import { maxCacheSeconds } from '../../shared/accounts/api-key.ts';
import { chatRequest } from '../../shared/capabilities/chat.ts';
import { completionRequest } from '../../shared/capabilities/completion.ts';
import { embeddingRequest } from '../../shared/capabilities/embedding.ts';
import {
  imageEditForm,
  imageEditRequest,
  imageGenerationRequest,
  imageVariationForm,
  upload,
} from '../../shared/capabilities/image.ts';
import { messageCountRequest, messageRequest } from '../../shared/capabilities/message.ts';
import { responseRequest } from '../../shared/capabilities/response-request.ts';
import { speechRequest } from '../../shared/capabilities/speech.ts';
import { transcriptionRequest, translationRequest } from '../../shared/capabilities/transcription.ts';
import { videoForm, videoRemixRequest, videoRequest } from '../../shared/capabilities/video-request.ts';
import { accountChangeFields, newAccountFields } from '../management/admin/accounts.ts';
import { newCreditFields } from '../management/admin/credits.ts';
import { invitationFields, userChangeFields } from '../management/admin/users.ts';
import {
  keyChangeFields,
  newKeyFields,
  operatorKeyChangeFields,
  operatorNewKeyFields,
  rotationFields,
} from '../management/keys/key-fields.ts';
import { authCalls } from '../management/sign-in/auth-calls.ts';

/** A schema of JSON Schema 2020-12, the dialect of OpenAPI 3.1. */
export interface JsonSchema {
  [keyword: string]: unknown;
}

/** The schemas that check request bodies, by their names in the document. */
const checked = {
  ChatCompletionRequest: chatRequest,
  CompletionRequest: completionRequest,
  EmbeddingRequest: embeddingRequest,
  ImageGenerationRequest: imageGenerationRequest,
  ImageEditRequest: imageEditRequest,
  ImageEditForm: imageEditForm,
  ImageVariationForm: imageVariationForm,
  SpeechRequest: speechRequest,
  ResponseRequest: responseRequest,
  MessageRequest: messageRequest,
  MessageCountRequest: messageCountRequest,
  VideoRequest: videoRequest,
  VideoForm: videoForm,
  VideoRemixRequest: videoRemixRequest,
  KeyFields: newKeyFields,
  KeyChange: keyChangeFields,
  OperatorKeyFields: operatorNewKeyFields,
  OperatorKeyChange: operatorKeyChangeFields,
  KeyRotation: rotationFields,
  AccountFields: newAccountFields,
  AccountChange: accountChangeFields,
  CreditFields: newCreditFields,
  Invitation: invitationFields,
  UserChange: userChangeFields,
} as const satisfies Record<string, z.ZodType>;

/** Schemas of forms whose file is read separately from the checked fields. */
const withFile = {
  TranscriptionForm: transcriptionRequest,
  TranslationForm: translationRequest,
} as const satisfies Record<string, z.ZodType>;

/** The name of the schema of a sign-in call. */
export type AuthRequestName = `Auth${string}`;
export type RequestName = keyof typeof checked | keyof typeof withFile | AuthRequestName;

/** The name of the schema of a call's fields: `/sign-in/email` is `AuthSignInEmail`. */
export function authRequestName(path: string): AuthRequestName {
  return `Auth${pascalCase(path)}`;
}

/** Converts `/sign-in/oauth2` to `SignInOauth2`. */
export function pascalCase(path: string): string {
  return path.replace(/[/-]+(\w?)/g, (_, letter: string) => letter.toUpperCase());
}

const file: JsonSchema = { type: 'string', contentMediaType: 'application/octet-stream' };

/**
 * Converts a schema to JSON Schema. Rules between fields are code, and are omitted.
 * @param io direction: sent to the gateway, or by it
 */
export function jsonSchemaOf(schema: z.ZodType, io: 'input' | 'output'): JsonSchema {
  const { $schema: _, ...json } = z.toJSONSchema(schema, {
    io,
    // Checks in code have no JSON Schema.
    unrepresentable: 'any',
    override: ({ zodSchema, jsonSchema }) => {
      if (zodSchema === upload) Object.assign(jsonSchema, file);
      // Removes defaults. This format adds nothing to the pattern beside it.
      if (String(jsonSchema.format) === 'starts_with') delete jsonSchema.format;
      if (isEmpty(jsonSchema.additionalProperties)) delete jsonSchema.additionalProperties;
      if (jsonSchema.minimum === Number.MIN_SAFE_INTEGER) delete jsonSchema.minimum;
      if (jsonSchema.maximum === Number.MAX_SAFE_INTEGER) delete jsonSchema.maximum;
      // A choice with one option is no choice.
      if (jsonSchema.oneOf?.length === 1) {
        Object.assign(jsonSchema, jsonSchema.oneOf[0]);
        delete jsonSchema.oneOf;
      }
    },
  });
  return json;
}

function isEmpty(value: unknown): boolean {
  return typeof value === 'object' && value !== null && Object.keys(value).length === 0;
}

/** The schemas of all request bodies by name. */
export function requestSchemas(): Record<string, JsonSchema> {
  const schemas: Record<string, JsonSchema> = {};
  for (const [name, schema] of Object.entries(checked)) schemas[name] = jsonSchemaOf(schema, 'input');
  for (const [name, schema] of Object.entries(withFile)) schemas[name] = addFile(jsonSchemaOf(schema, 'input'));
  for (const [path, { fields }] of Object.entries(authCalls)) {
    if (fields !== undefined) schemas[authRequestName(path)] = jsonSchemaOf(fields, 'input');
  }
  return schemas;
}

function addFile(schema: JsonSchema): JsonSchema {
  const { properties = {}, required = [] } = schema as { properties?: JsonSchema; required?: readonly string[] };
  return { ...schema, properties: { file, ...properties }, required: ['file', ...required] };
}

/** Descriptions and schemas of headers by name. */
export const headerSchemas: Readonly<Record<HeaderName, { readonly description: string; readonly schema: z.ZodType }>> =
  {
    Prefer: {
      description:
        '`respond-async` returns 202 with the job at once; `respond-async, wait=10` waits up to ten seconds for the answer first. `quote` runs nothing, and returns routes, maximum cost and expected wait.',
      schema: z.string(),
    },
    'Idempotency-Key': {
      description:
        'A repeat with the same key and body within 24 hours gets the answer of the first request; another body is refused with 422.',
      schema: z.string().max(255),
    },
    'X-Sluice-On-Disconnect': {
      description: 'What becomes of the job if the client disconnects.',
      schema: z.enum(['cancel', 'continue']),
    },
    'X-Sluice-Cache': {
      description:
        'Seconds: an answer of this age to an identical request of the account is returned at once, for nothing; else the answer is cached that long. `0`: neither, even if the API key has it on. By default as the key says.',
      schema: z.int().min(0).max(maxCacheSeconds),
    },
    'X-Sluice-Single-Flight': {
      description:
        '`1`: identical requests of the account that come while this one runs share its job, and are charged once. `0`: not, even if the API key has it on.',
      schema: z.enum(['0', '1']),
    },
    'X-Sluice-Priority': {
      description:
        '`low`: the request waits for spare capacity, behind all others; `high`: it is served before them, if its key and account may. By default as its `service_tier` (`flex`, `priority`) says, or else its key.',
      schema: z.enum(['low', 'normal', 'high']),
    },
    'X-Sluice-Start-By': {
      description: 'Seconds until the first call of a vendor must have begun, else the request ends with 504.',
      schema: z.number().positive().max(86_400),
    },
    'X-Stainless-Timeout': {
      description:
        "The request's deadline in seconds, for a stream that of its beginning, which OpenAI's and Anthropic's libraries send: 504 after that. The job of a keyed request goes on for a repeat. Not for asynchronous and background work.",
      schema: z.number(),
    },
    'X-Stainless-Retry-Count': {
      description:
        "How many times the client library has retried the request, which OpenAI's and Anthropic's libraries send: a retry gets the answer of an earlier try whose connection broke.",
      schema: z.int().min(0),
    },
    'X-Client-Request-Id': {
      description: "The caller's own id of the request: it is logged, and sent back.",
      schema: z.string().max(128),
    },
    'Last-Event-ID': {
      description: 'The id of the last event received: the stream resumes after it.',
      schema: z.string(),
    },
  };

/** Headers that several operations accept; described once, in request-schemas.ts. */
export type HeaderName =
  | 'Prefer'
  | 'Idempotency-Key'
  | 'X-Sluice-On-Disconnect'
  | 'X-Sluice-Cache'
  | 'X-Sluice-Single-Flight'
  | 'X-Sluice-Start-By'
  | 'X-Sluice-Priority'
  | 'X-Stainless-Timeout'
  | 'X-Stainless-Retry-Count'
  | 'X-Client-Request-Id'
  | 'Last-Event-ID';
