import type { ExampleModels, Operation } from './operation.ts';

/** The JSON body of an operation's example, if it has one. */
export function exampleBody({ example }: Operation, models: ExampleModels): Record<string, unknown> | undefined {
  if (example?.json === undefined) return undefined;
  return { ...(example.model && { model: models[example.model] }), ...example.json };
}

/** Shell variables for ids in paths: the id of a job is `$JOB_ID`. */
const variables: readonly (readonly [beginning: string, variable: string])[] = [
  ['/v1/jobs/', '$JOB_ID'],
  ['/v1/responses/', '$RESPONSE_ID'],
  ['/v1/videos/', '$VIDEO_ID'],
];

/** An operation's example as a command for curl, with the key in `$SLUICE_API_KEY`. */
export function curlOf(
  route: string,
  operation: Operation,
  { baseUrl, models }: { readonly baseUrl: string; readonly models: ExampleModels },
): string {
  const { example = {}, isAnthropic } = operation;
  const [method = '', pattern = ''] = route.split(' ');
  const variable = variables.find(([beginning]) => pattern.startsWith(beginning))?.[1] ?? '';
  const path = pattern.replace('*id', encodeModel(models.chat)).replace(':id', variable);
  const query = new URLSearchParams(example.query).toString();
  const json = exampleBody(operation, models);
  const fields = { ...(example.model && example.form && { model: models[example.model] }), ...example.form };
  const usual = json === undefined && example.form === undefined ? 'GET' : 'POST';
  return [
    `curl ${quote(`${baseUrl}${path}${query && `?${query}`}`)}`,
    ...(method === usual ? [] : [`-X ${method}`]),
    ...(example.output === undefined ? [] : [`-o ${example.output}`]),
    ...(isAnthropic === 'always'
      ? ['-H "x-api-key: $SLUICE_API_KEY"', '-H "anthropic-version: 2023-06-01"']
      : ['-H "Authorization: Bearer $SLUICE_API_KEY"']),
    ...(json === undefined
      ? []
      : ['-H "Content-Type: application/json"', `-d '${escapeQuotes(JSON.stringify(json))}'`]),
    ...Object.entries(fields).map(([name, value]) => `-F '${escapeQuotes(`${name}=${value}`)}'`),
  ].join(' \\\n  ');
}

/** Keeps slashes of a model's id in the path. */
function encodeModel(id: string): string {
  return encodeURIComponent(id).replaceAll('%2F', '/');
}

/** Double quotes, as the shell expands variables in them. */
function quote(text: string): string {
  return /["&?$]/.test(text) ? `"${text.replaceAll('"', '%22')}"` : text;
}

function escapeQuotes(text: string): string {
  return text.replaceAll("'", `'\\''`);
}
