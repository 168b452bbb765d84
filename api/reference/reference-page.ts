import { readFileSync } from 'node:fs';
import { escapeHtml, policyOf } from '../pages/page-parts.ts';
import { type OpenApiDocument, type OpenApiOperation, openApiDocument, type ReferenceFacts } from './document.ts';
import type { JsonSchema } from './request-schemas.ts';
import { type FieldRow, fieldRows, typeText } from './schema-text.ts';

const template = readFileSync(new URL('./reference-page.html', import.meta.url), 'utf8');

/** `Content-Security-Policy` of the page: its one inline style and the icon, and nothing else. */
export const referencePagePolicy = policyOf(template);

/** Renders the page at `/docs`: the API document for people, as HTML without a script. */
export function referencePage(facts: ReferenceFacts): string {
  const document = openApiDocument(facts);
  const { tags, components } = document;
  const sections = [...tags.map(({ name }) => name), 'Errors', 'Objects'];
  const values: Record<string, string> = {
    baseUrl: escapeHtml(facts.baseUrl),
    sections: sections.map((name) => `<a href="#${anchor(name)}">${escapeHtml(name)}</a>`).join('\n'),
    operations: tags.map((tag) => section(document, tag)).join('\n'),
    errors: marked(String(components.responses.Error?.description)),
    objects: Object.entries(components.schemas)
      .map(([name, schema]) => object(name, schema))
      .join('\n'),
  };
  // One pass, so that values are not substituted again.
  return template.replace(/\{\{(\w+)\}\}/g, (_, name: string) => values[name] ?? '');
}

function section(document: OpenApiDocument, { name, description }: OpenApiDocument['tags'][number]): string {
  const operations = Object.entries(document.paths).flatMap(([path, item]) =>
    Object.entries(item)
      .filter(([, operation]) => operation.tags.includes(name))
      .map(([method, operation]) => operationPart(document, `${method.toUpperCase()} ${path}`, operation)),
  );
  return `<h2 id="${anchor(name)}">${escapeHtml(name)}</h2>\n<p>${marked(description)}</p>\n${operations.join('\n')}`;
}

function operationPart(document: OpenApiDocument, name: string, operation: OpenApiOperation): string {
  const { operationId, summary, description, parameters = [], requestBody, responses, security } = operation;
  const rows = parameters.map((given) => parameterRow(resolved(document, given)));
  const bodies = Object.entries(requestBody?.content ?? {}).map(
    ([type, { schema }]) => `${schemaLink(schema)} as ${type}`,
  );
  const [curl] = operation['x-codeSamples'] ?? [];
  const who = security.length === 0 ? 'none' : security.flatMap(Object.keys).map(credentialName).join(' or ');
  return [
    '<details>',
    `<summary><code>${escapeHtml(name)}</code> <span>${escapeHtml(summary)}</span></summary>`,
    `<div id="${anchor(operationId)}">`,
    description === undefined ? '' : `<p>${marked(description)}</p>`,
    `<p>Authentication: ${who}.</p>`,
    rows.length === 0 ? '' : `<h3>Parameters</h3>${table(rows)}`,
    bodies.length === 0 ? '' : `<h3>Body</h3><p>${bodies.join(', or ')}</p>`,
    `<h3>Answers</h3>${answers(responses)}`,
    curl === undefined ? '' : `<h3>Example</h3><pre tabindex="0"><code>${escapeHtml(curl.source)}</code></pre>`,
    '</div>',
    '</details>',
  ]
    .filter((line) => line !== '')
    .join('\n');
}

const credentialNames: Readonly<Record<string, string>> = {
  apiKey: 'a key as bearer token',
  xApiKey: 'a key as <code>x-api-key</code>',
  session: 'a signed-in user',
};

function credentialName(scheme: string): string {
  return credentialNames[scheme] ?? escapeHtml(scheme);
}

function answers(responses: OpenApiOperation['responses']): string {
  const lines = Object.entries(responses)
    .filter(([status]) => !status.endsWith('XX'))
    .map(([status, { description, content = {} }]) => {
      const types = Object.entries(content as Record<string, JsonSchema>).map(([type, { schema }]) =>
        schema === undefined ? `<code>${escapeHtml(type)}</code>` : schemaLink(schema),
      );
      return `<p>${status}: ${marked(String(description))} ${types.join(', ')}</p>`;
    });
  return `${lines.join('')}<p>Else an <a href="#errors">error</a>.</p>`;
}

function parameterRow({ name, required, description, schema, in: place }: JsonSchema): FieldRow {
  return {
    name: String(name),
    type: `${typeText(schema as JsonSchema)} in ${place}`,
    isRequired: required === true,
    description: String(description ?? ''),
  };
}

function object(name: string, schema: JsonSchema): string {
  const rows = fieldRows(schema);
  const body = rows.length > 0 ? table(rows) : `<p>${escapeHtml(typeText(schema))}</p>`;
  return `<details>\n<summary><code>${escapeHtml(name)}</code></summary>\n<div id="${anchor(`object-${name}`)}">${body}</div>\n</details>`;
}

function table(rows: readonly FieldRow[]): string {
  const cells = rows.map(
    ({ name, type, isRequired, description }) =>
      `<tr><td><code>${escapeHtml(name)}</code></td><td>${escapeHtml(type)}${isRequired ? ' (required)' : ''}</td><td>${marked(description)}</td></tr>`,
  );
  return `<table><thead><tr><th>Name</th><th>Type</th><th></th></tr></thead><tbody>${cells.join('')}</tbody></table>`;
}

function resolved({ components }: OpenApiDocument, parameter: JsonSchema): JsonSchema {
  const { $ref: reference } = parameter;
  if (typeof reference !== 'string') return parameter;
  return components.parameters[reference.slice(reference.lastIndexOf('/') + 1)] ?? {};
}

function schemaLink(schema: unknown): string {
  const name = typeText(schema as JsonSchema);
  return `<a href="#${anchor(`object-${name}`)}">${escapeHtml(name)}</a>`;
}

function anchor(name: string): string {
  return name.replace(/\W+/g, '-').toLowerCase();
}

/** Renders a text as HTML, with backticks as code. */
function marked(text: string): string {
  return escapeHtml(text).replace(/`([^`]+)`/g, '<code>$1</code>');
}
