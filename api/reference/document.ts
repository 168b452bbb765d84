import type { z } from 'zod';
import { errorTable } from '../../shared/errors.ts';
import { quoteType } from '../pipeline/quote.ts';
import { adminOperations } from './admin-operations.ts';
import { consoleOperations } from './console-operations.ts';
import { curlOf, exampleBody } from './examples.ts';
import { gatewayOperations } from './gateway-operations.ts';
import { makerOperations } from './maker-operations.ts';
import { type Answer, type ExampleModels, type Guard, type Operation, type Operations, tags } from './operation.ts';
import { ownObjects } from './own-objects.ts';
import { readingOperations } from './reading-operations.ts';
import { headerSchemas, type JsonSchema, jsonSchemaOf, requestSchemas } from './request-schemas.ts';
import { wireObjects } from './wire-objects.ts';

/** All operations by route: the one table from which the document is made. */
export const operations: Operations = {
  ...makerOperations,
  ...readingOperations,
  ...gatewayOperations,
  ...consoleOperations,
  ...adminOperations,
};

/** Facts that differ between gateways. */
export interface ReferenceFacts {
  /** Without a trailing slash and without `/v1`. */
  readonly baseUrl: string;
  readonly models: ExampleModels;
}

/** An operation in OpenAPI's format. */
export interface OpenApiOperation {
  readonly operationId: string;
  readonly tags: readonly string[];
  readonly summary: string;
  readonly description?: string;
  readonly parameters?: readonly JsonSchema[];
  readonly requestBody?: { readonly required: true; readonly content: Record<string, JsonSchema> };
  readonly responses: Record<string, JsonSchema>;
  readonly security: readonly JsonSchema[];
  readonly 'x-codeSamples'?: readonly { readonly lang: string; readonly source: string }[];
}

export interface OpenApiDocument {
  readonly openapi: '3.1.0';
  readonly info: JsonSchema;
  readonly servers: readonly { readonly url: string }[];
  readonly tags: readonly { readonly name: string; readonly description: string }[];
  readonly paths: Record<string, Record<string, OpenApiOperation>>;
  readonly components: Record<'schemas' | 'responses' | 'parameters' | 'securitySchemes', Record<string, JsonSchema>>;
}

/** The whole API as an OpenAPI 3.1 document. It is public and contains no secrets. */
export function openApiDocument(facts: ReferenceFacts): OpenApiDocument {
  const paths: Record<string, Record<string, OpenApiOperation>> = {};
  for (const [route, operation] of Object.entries(operations)) {
    const [method = '', pattern = ''] = route.split(' ');
    const path = pathOf(pattern);
    paths[path] = { ...paths[path], [method.toLowerCase()]: operationOf(route, path, operation, facts) };
  }
  return {
    openapi: '3.1.0',
    info: {
      title: 'Sluice',
      version: '1',
      summary: 'A queue-backed model gateway: the APIs of OpenAI and Anthropic in front of many vendors.',
      license: { name: 'MIT', identifier: 'MIT' },
    },
    servers: [{ url: facts.baseUrl }],
    tags,
    paths,
    components: { schemas: schemas(), responses: errorAnswers(), parameters: headers(), securitySchemes },
  };
}

/** Converts a path of the router to OpenAPI's notation. */
export function pathOf(pattern: string): string {
  return pattern.replace('{/*path}', '').replace(/[:*](\w+)/g, '{$1}');
}

function operationOf(route: string, path: string, operation: Operation, facts: ReferenceFacts): OpenApiOperation {
  const { id, tag, summary, description, example } = operation;
  const parameters = parametersOf(path, operation);
  const requestBody = bodyOf(operation, facts.models);
  return {
    operationId: id,
    tags: [tag],
    summary,
    ...(description !== undefined && { description }),
    ...(parameters.length > 0 && { parameters }),
    ...(requestBody !== undefined && { requestBody }),
    responses: answersOf(operation),
    security: guards[operation.guard],
    ...(example && { 'x-codeSamples': [{ lang: 'Shell', source: curlOf(route, operation, facts) }] }),
  };
}

const ref = (kind: 'schemas' | 'responses' | 'parameters', name: string): JsonSchema => ({
  $ref: `#/components/${kind}/${name}`,
});

function parametersOf(path: string, { query = {}, headers: names = [], example }: Operation): JsonSchema[] {
  const inPath = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => ({
    ...{ name, in: 'path', required: true, schema: { type: 'string' } },
  }));
  const inQuery = Object.entries(query).map(([name, type]) => {
    const { description, ...schema } = jsonSchemaOf(type, 'input');
    const given = example?.query?.[name];
    return {
      ...{ name, in: 'query', schema },
      ...(description !== undefined && { description }),
      ...(given !== undefined && { example: schema.type === 'integer' ? Number(given) : given }),
    };
  });
  return [...inPath, ...inQuery, ...names.map((name) => ref('parameters', name))];
}

function bodyOf(operation: Operation, models: ExampleModels): OpenApiOperation['requestBody'] {
  const { json, form } = operation;
  if (json === undefined && form === undefined) return undefined;
  const example = exampleBody(operation, models);
  const content: Record<string, JsonSchema> = {};
  if (json !== undefined) {
    content['application/json'] = { schema: ref('schemas', json), ...(example !== undefined && { example }) };
  }
  if (form !== undefined) content['multipart/form-data'] = { schema: ref('schemas', form) };
  return { required: true, content };
}

const errorShapes = { always: 'AnthropicError', by_header: 'EitherError' } as const;

function answersOf({ answer, makesJob, isAnthropic }: Operation): Record<string, JsonSchema> {
  const error = ref('responses', isAnthropic === undefined ? 'Error' : errorShapes[isAnthropic]);
  return {
    [String(answer.status ?? 200)]: makesJob ? withQuote(answerOf(answer)) : answerOf(answer),
    ...(answer.isCached && { 304: { description: 'It is as the `If-None-Match` says.' } }),
    ...(answer.inRanges && { 206: answerOf({ ...answer, description: 'The part that `Range` asks for.' }) }),
    ...(makesJob && { 202: answerOf({ json: 'Job', description: 'The job, for `Prefer: respond-async`.' }) }),
    ...(answer.unavailable && { 503: answerOf({ json: answer.unavailable, description: 'Not now.' }) }),
    '4XX': error,
    '5XX': error,
  };
}

/** The answer to a request that makes a job: with `Prefer: quote` it is another one, of its own media type. */
function withQuote({ content, ...answer }: JsonSchema): JsonSchema {
  return { ...answer, content: { ...(content as JsonSchema), [quoteType]: { schema: ref('schemas', 'Quote') } } };
}

function answerOf({ status = 200, description, json, types = [] }: Answer): JsonSchema {
  const content: Record<string, JsonSchema> = {};
  if (json !== undefined) content['application/json'] = { schema: ref('schemas', json) };
  for (const type of types) content[type] = {};
  return {
    description:
      description ?? (status === 101 ? 'The WebSocket is open.' : status === 302 ? 'A redirect.' : 'Success.'),
    ...(Object.keys(content).length > 0 && { content }),
  };
}

let knownSchemas: Record<string, JsonSchema> | undefined;

/** Cached: the same for every base URL, and the slowest part to make. */
function schemas(): Record<string, JsonSchema> {
  knownSchemas ??= allSchemas();
  return knownSchemas;
}

function allSchemas(): Record<string, JsonSchema> {
  const answers = Object.entries<z.ZodType>({ ...ownObjects, ...wireObjects });
  return {
    ...requestSchemas(),
    ...Object.fromEntries(
      answers.map(([name, schema]) => [name, opened(jsonSchemaOf(schema, 'output')) as JsonSchema]),
    ),
  };
}

/** Opens a schema's objects to further fields: later versions add some, and clients made from the document must accept them. */
function opened(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(opened);
  if (typeof schema !== 'object' || schema === null) return schema;
  const entries = Object.entries(schema).filter(([name, value]) => name !== 'additionalProperties' || value !== false);
  return Object.fromEntries(entries.map(([name, value]) => [name, opened(value)]));
}

function errorAnswers(): Record<string, JsonSchema> {
  const codes = Object.entries(errorTable).map(([code, { status }]) => `${status} \`${code}\``);
  const description = `An error. Its \`code\` is the vendor's own where it is more exact, or one of: ${codes.join(', ')}.`;
  const answer = (name: string, text: string): JsonSchema => ({
    description: text,
    content: { 'application/json': { schema: ref('schemas', name) } },
  });
  return {
    Error: answer('Error', description),
    AnthropicError: answer('AnthropicError', "An error, in the shape of Anthropic's API."),
    EitherError: answer('EitherError', 'An error, in the shape of the API that is asked.'),
  };
}

function headers(): Record<string, JsonSchema> {
  const entries = Object.entries(headerSchemas).map(([name, { description, schema }]) => [
    name,
    { name, in: 'header', description, schema: jsonSchemaOf(schema, 'input') },
  ]);
  return Object.fromEntries(entries) as Record<string, JsonSchema>;
}

const securitySchemes: Record<string, JsonSchema> = {
  apiKey: { type: 'http', scheme: 'bearer', description: 'An API key; for `/admin/v1` an operator key.' },
  xApiKey: {
    type: 'apiKey',
    in: 'header',
    name: 'x-api-key',
    description: "The same key, as Anthropic's clients send it.",
  },
  session: {
    ...{ type: 'apiKey', in: 'cookie', name: 'sluice.session_token' },
    description: 'The session of a signed-in user; under https its name begins with `__Secure-`.',
  },
};

const guards: Readonly<Record<Guard, readonly JsonSchema[]>> = {
  public: [],
  key: [{ apiKey: [] }, { xApiKey: [] }],
  session: [{ session: [] }],
  operator: [{ apiKey: [] }, { session: [] }],
};
