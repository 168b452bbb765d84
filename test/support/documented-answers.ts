import { readFileSync } from 'node:fs';
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';
import { gatewayPath } from '../../api/http/request-address.ts';
import { authPath } from '../../api/management/sign-in/auth-path.ts';
import {
  type OpenApiDocument,
  type OpenApiOperation,
  openApiDocument,
  operations,
  pathOf,
} from '../../api/reference/document.ts';
import type { ExampleModels } from '../../api/reference/operation.ts';
import { ownObjects } from '../../api/reference/own-objects.ts';

/** An answer of an api process, as `keep-answers.mjs` has kept it. */
export interface KeptAnswer {
  readonly method: string;
  /** Path and query. */
  readonly url: string;
  readonly status: number;
  /** Its Content-Type; empty where it has none. */
  readonly type: string;
  /** Of its body. */
  readonly bytes: number;
  /** Its JSON; undefined of anything else, and of what is large. */
  readonly body?: string;
}

/** What the gateway's own OpenAPI document says of an answer. */
type Described = { content?: Record<string, { schema?: { $ref: string } }> };

const ajvOptions = { strict: false, allErrors: true, validateFormats: false } as const;

/** Holds answers against the OpenAPI document that the gateway itself publishes; our own objects must have no field more. */
export class DocumentedAnswers {
  readonly #document: OpenApiDocument;
  readonly #operations: readonly {
    readonly method: string;
    readonly path: RegExp;
    readonly operation: OpenApiOperation;
  }[];
  readonly #ajv = new Ajv2020(ajvOptions);
  readonly #closed = new Ajv2020(ajvOptions);
  readonly #known = new Map<string, ValidateFunction>();

  constructor() {
    const models = new Proxy({}, { get: () => 'any-model' }) as ExampleModels;
    this.#document = openApiDocument({ baseUrl: 'http://127.0.0.1', models });
    this.#ajv.addSchema(this.#document, 'document');
    const schemas = Object.entries(this.#document.components.schemas).filter(([name]) =>
      Object.hasOwn(ownObjects, name),
    );
    this.#closed.addSchema(closed({ components: { schemas: Object.fromEntries(schemas) } }) as object, 'document');
    this.#operations = Object.keys(operations)
      // Paths with fewer names are tried first: /v1/videos/{id}/content is no id of a video.
      .sort((one, other) => one.split(/[:*]/).length - other.split(/[:*]/).length)
      .map((route) => {
        const [method = '', pattern = ''] = route.split(' ');
        const path = pattern.replace('{/*path}', '(/.*)?').replace(/:\w+/g, '[^/]+').replace(/\*\w+/g, '.+');
        const operation = this.#document.paths[pathOf(pattern)]?.[method.toLowerCase()] as OpenApiOperation;
        return { method, path: new RegExp(`^${path}/?$`, 'i'), operation };
      });
  }

  /** What is wrong with an answer; undefined: it is as the document says. */
  fault(answer: KeptAnswer): string | undefined {
    const { method, url, status } = answer;
    // Neither is an operation of its own: what they say is said of GET, and by the rules for pages of other sites.
    if (method === 'HEAD' || method === 'OPTIONS') return undefined;
    // A target may name its origin, too.
    const path = gatewayPath(url.replace(/^https?:\/\/[^/]*/, '')).split('?')[0] as string;
    const operation = this.#operations.find((each) => each.method === method && each.path.test(path))?.operation;
    // Better Auth's own answers, and the files of the console.
    if (path.startsWith(authPath) || /^\/console(?!\/api\/)/.test(path)) return undefined;
    if (operation === undefined) {
      if (status < 300) return 'the document has no such operation';
      return status < 400 ? undefined : this.#bodyFault(anyError, answer, `what is no operation, ${status}`);
    }
    const said = this.#described(operation, status);
    if (said === undefined) return `the document has no status ${status} for ${operation.operationId}`;
    return this.#bodyFault(said, answer, `${operation.operationId} ${status}`);
  }

  #described({ responses }: OpenApiOperation, status: number): Described | undefined {
    const said = responses[String(status)] ?? responses[`${String(status)[0]}XX`];
    const { $ref: reference } = (said ?? {}) as { $ref?: string };
    if (reference === undefined) return said as Described | undefined;
    return this.#document.components.responses[reference.slice(reference.lastIndexOf('/') + 1)] as Described;
  }

  #bodyFault({ content = {} }: Described, { type, bytes, body }: KeptAnswer, name: string): string | undefined {
    const named = (type.split(';')[0] as string).trim();
    const said = content[named] ?? content[`${named.split('/')[0]}/*`];
    // A stream may have no event left, and a file no byte.
    const mayBeEmpty = said === undefined ? Object.keys(content).length === 0 : named !== 'application/json';
    if (bytes === 0) return mayBeEmpty ? undefined : `${name} has no body`;
    if (said === undefined) return `${name} is not said to have the type '${named}'`;
    if (body === undefined || said.schema === undefined) return undefined;
    return this.#schemaFault(said.schema.$ref, body, name);
  }

  #schemaFault(reference: string, body: string, name: string): string | undefined {
    const isOwn = Object.hasOwn(ownObjects, reference.slice(reference.lastIndexOf('/') + 1));
    const ajv = isOwn ? this.#closed : this.#ajv;
    const validate = this.#known.get(reference) ?? ajv.compile({ $ref: `document${reference}` });
    this.#known.set(reference, validate);
    try {
      if (validate(JSON.parse(body))) return undefined;
    } catch {
      return `${name}: its body is no JSON`;
    }
    return `${name}: ${ajv.errorsText(validate.errors).slice(0, 600)}`;
  }
}

/** What is said of a path that is no operation. */
const anyError: Described = {
  content: { 'application/json': { schema: { $ref: '#/components/schemas/EitherError' } } },
};

/** A schema that takes no further fields, where it says which there are. */
function closed(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(closed);
  if (typeof schema !== 'object' || schema === null) return schema;
  const isObject = 'properties' in schema && Object.keys(schema.properties as object).length > 0 && 'type' in schema;
  const entries = Object.entries(schema).map(([name, value]) => [name, closed(value)]);
  return { ...Object.fromEntries(entries), ...(isObject && { additionalProperties: false }) };
}

/** The answers in a file that `keep-answers.mjs` has written. */
export function readAnswers(file: string): KeptAnswer[] {
  return readFileSync(file, 'utf8')
    .split('\n')
    .flatMap((line) => {
      try {
        return [JSON.parse(line) as KeptAnswer];
      } catch {
        // A line is cut where its process was killed, and the last one is empty.
        return [];
      }
    });
}
