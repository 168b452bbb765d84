import type { ModelDetails } from '../../api/models.ts';
import { type CodeLanguage, type CodeRequest, codeFor } from '../playground/code/code-snippets.ts';

const prompt = 'A lighthouse at dusk, in water colours';

/** A first request for each path of a model, without the model. */
const samples: Readonly<Record<string, Omit<CodeRequest, 'path'>>> = {
  '/v1/chat/completions': { body: { messages: [{ role: 'user', content: 'Hello!' }] } },
  '/v1/completions': { body: { prompt: 'Once upon a time', max_tokens: 50 } },
  '/v1/embeddings': { body: { input: 'Hello!' } },
  '/v1/images/generations': { body: { prompt, response_format: 'b64_json' } },
  '/v1/images/edits': { body: { prompt }, file: { field: 'image', name: 'picture.png' } },
  '/v1/videos': { body: { prompt } },
  '/v1/audio/speech': { body: { input: 'Hello!', voice: 'alloy' }, saveAs: 'speech.mp3' },
  '/v1/audio/transcriptions': { body: {}, file: { field: 'file', name: 'speech.wav' } },
};

/** Methods of the official clients for paths missing from the playground: their responses are printed. */
const clientMethods: Readonly<Record<string, string>> = {
  '/v1/completions': 'completions.create',
  '/v1/embeddings': 'embeddings.create',
  '/v1/images/edits': 'images.edit',
};

/**
 * A whole program that sends a first request to a model.
 * @param baseUrl the gateway's, without `/v1`
 */
export function sampleCode(language: CodeLanguage, baseUrl: string, { id, paths }: ModelDetails): string {
  const path = paths.find((one) => Object.hasOwn(samples, one)) ?? '/v1/chat/completions';
  const { body, ...rest } = samples[path] as Omit<CodeRequest, 'path'>;
  const request = { path, body: { model: id, ...body }, ...rest };
  const method = clientMethods[path];
  if (language === 'curl' || method === undefined) return codeFor(language, baseUrl, request);
  return language === 'Python' ? python(baseUrl, method, request) : typeScript(baseUrl, method, request);
}

function python(baseUrl: string, method: string, { body, file }: CodeRequest): string {
  const fields = Object.entries(body).map(([name, value]) => `    ${name}=${JSON.stringify(value)},`);
  if (file !== undefined) fields.push(`    ${file.field}=open(${JSON.stringify(file.name)}, "rb"),`);
  return [
    'import os',
    'from openai import OpenAI',
    '',
    `client = OpenAI(base_url=${JSON.stringify(`${baseUrl}/v1`)}, api_key=os.environ["SLUICE_API_KEY"])`,
    '',
    `answer = client.${method}(`,
    ...fields,
    ')',
    'print(answer)',
    '',
  ].join('\n');
}

function typeScript(baseUrl: string, method: string, { body, file }: CodeRequest): string {
  const fields = Object.entries(body).map(([name, value]) => `  ${name}: ${JSON.stringify(value)},`);
  if (file !== undefined) fields.push(`  ${file.field}: createReadStream(${JSON.stringify(file.name)}),`);
  return [
    ...(file === undefined ? [] : ["import { createReadStream } from 'node:fs';"]),
    "import OpenAI from 'openai';",
    '',
    `const client = new OpenAI({ baseURL: ${JSON.stringify(`${baseUrl}/v1`)}, apiKey: process.env.SLUICE_API_KEY });`,
    '',
    `const answer = await client.${method}({`,
    ...fields,
    '});',
    'console.log(answer);',
    '',
  ].join('\n');
}
