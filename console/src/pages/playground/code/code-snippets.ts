import { pythonLiteral } from './python-literal.ts';

/** A request of the playground, for generating its code. */
export interface CodeRequest {
  /** `/v1/chat/completions` */
  readonly path: string;
  /** Its JSON body; for a form, the fields beside the file. */
  readonly body: Readonly<Record<string, unknown>>;
  /** A form's file. */
  readonly file?: { readonly field: string; readonly name: string };
  /** The name of a file to save the response's bytes as. */
  readonly saveAs?: string;
}

/** The languages of the code. */
export const codeLanguages = ['curl', 'Python', 'TypeScript'] as const;
export type CodeLanguage = (typeof codeLanguages)[number];

/** Placeholder for the caller's key: none is ever shown. */
const keyName = 'SLUICE_API_KEY';

/**
 * A whole program that sends exactly this request.
 * @param baseUrl the gateway's, without `/v1`
 */
export function codeFor(language: CodeLanguage, baseUrl: string, request: CodeRequest): string {
  if (language === 'curl') return curl(baseUrl, request);
  return language === 'Python' ? python(baseUrl, request) : typeScript(baseUrl, request);
}

/** The same with base64 over 300 characters shortened: for display, not for running. */
export function shortened(code: string): string {
  return code.replace(/(data:[\w/+.-]+;base64,[A-Za-z0-9+/=]{40})[A-Za-z0-9+/=]{260,}/g, '$1…');
}

/** One argument of a POSIX shell. */
const quoted = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`;

function curl(baseUrl: string, { path, body, file, saveAs }: CodeRequest): string {
  const lines = [`curl ${body.stream === true ? '-N ' : ''}${quoted(baseUrl + path)}`];
  lines.push(`-H "Authorization: Bearer $${keyName}"`);
  if (file === undefined) {
    lines.push("-H 'Content-Type: application/json'", `-d ${quoted(JSON.stringify(body, null, 2))}`);
  } else {
    lines.push(`-F ${quoted(`${file.field}=@${file.name}`)}`);
    for (const [name, value] of Object.entries(body)) {
      const [field, values] = Array.isArray(value) ? [`${name}[]`, value] : [name, [value]];
      for (const item of values) lines.push(`--form-string ${quoted(`${field}=${item}`)}`);
    }
  }
  if (saveAs !== undefined) lines.push(`-o ${quoted(saveAs)}`);
  return `${lines.join(' \\\n  ')}\n`;
}

/** Methods of the official clients by path. */
const methods: Readonly<Record<string, { readonly python: string; readonly typeScript: string }>> = {
  '/v1/chat/completions': { python: 'chat.completions.create', typeScript: 'chat.completions.create' },
  '/v1/images/generations': { python: 'images.generate', typeScript: 'images.generate' },
  '/v1/videos': { python: 'videos.create', typeScript: 'videos.create' },
  '/v1/audio/speech': { python: 'audio.speech.create', typeScript: 'audio.speech.create' },
  '/v1/audio/transcriptions': { python: 'audio.transcriptions.create', typeScript: 'audio.transcriptions.create' },
};

/** Fields that the gateway accepts but the official Python client does not name: it sends them in `extra_body`. */
const extraFields: ReadonlySet<string> = new Set(['top_k', 'min_p', 'repetition_penalty']);

function python(baseUrl: string, { path, body, file, saveAs }: CodeRequest): string {
  const given = Object.entries(body).filter(([name]) => !extraFields.has(name));
  const extra = Object.fromEntries(Object.entries(body).filter(([name]) => extraFields.has(name)));
  const fields = given.map(([name, value]) => `    ${name}=${pythonLiteral(value, 4)},`);
  if (file !== undefined) fields.unshift(`    ${file.field}=open(${JSON.stringify(file.name)}, "rb"),`);
  if (Object.keys(extra).length > 0) fields.push(`    extra_body=${pythonLiteral(extra, 4)},`);
  const usesFiles = path === '/v1/images/generations';
  return [
    ...(usesFiles ? ['import base64'] : []),
    'import os',
    'from openai import OpenAI',
    '',
    `client = OpenAI(base_url=${JSON.stringify(`${baseUrl}/v1`)}, api_key=os.environ["${keyName}"])`,
    '',
    `answer = client.${methods[path]?.python}(`,
    ...fields,
    ')',
    ...pythonEnd(path, body, saveAs),
    '',
  ].join('\n');
}

function pythonEnd(path: string, body: CodeRequest['body'], saveAs: string | undefined): string[] {
  switch (path) {
    case '/v1/chat/completions':
      if (body.stream !== true) return ['print(answer.choices[0].message)'];
      return [
        'for chunk in answer:',
        '    if chunk.choices and chunk.choices[0].delta.content:',
        '        print(chunk.choices[0].delta.content, end="", flush=True)',
      ];
    case '/v1/images/generations':
      return [
        'for number, image in enumerate(answer.data):',
        '    with open(f"image-{number + 1}.png", "wb") as file:',
        '        file.write(base64.b64decode(image.b64_json))',
      ];
    case '/v1/videos':
      return [
        'video = client.videos.poll(answer.id)',
        'if video.status != "completed":',
        '    raise RuntimeError(video.error)',
        'client.videos.download_content(video.id).write_to_file("video.mp4")',
      ];
    case '/v1/audio/speech':
      return [`answer.write_to_file(${JSON.stringify(saveAs ?? 'speech.mp3')})`];
    default:
      return ['print(answer)'];
  }
}

function typeScript(baseUrl: string, { path, body, file, saveAs }: CodeRequest): string {
  const json = JSON.stringify(body, null, 2);
  const args = file === undefined ? json : formArguments(json, file);
  const needsRead = file !== undefined;
  const needsWrite = path === '/v1/images/generations' || path === '/v1/videos' || path === '/v1/audio/speech';
  return [
    ...(needsRead ? ["import { createReadStream } from 'node:fs';"] : []),
    ...(needsWrite ? ["import { writeFile } from 'node:fs/promises';"] : []),
    "import OpenAI from 'openai';",
    '',
    `const client = new OpenAI({ baseURL: ${JSON.stringify(`${baseUrl}/v1`)}, apiKey: process.env.${keyName} });`,
    '',
    `const answer = await client.${methods[path]?.typeScript}(${args});`,
    ...typeScriptEnd(path, body, saveAs),
    '',
  ].join('\n');
}

function formArguments(json: string, { field, name }: NonNullable<CodeRequest['file']>): string {
  const rest = json === '{}' ? '\n}' : json.slice(1);
  return `{\n  ${JSON.stringify(field)}: createReadStream(${JSON.stringify(name)}),${rest}`;
}

function typeScriptEnd(path: string, body: CodeRequest['body'], saveAs: string | undefined): string[] {
  switch (path) {
    case '/v1/chat/completions':
      if (body.stream !== true) return ['console.log(answer.choices[0]?.message);'];
      return [
        'for await (const chunk of answer) {',
        "  process.stdout.write(chunk.choices[0]?.delta.content ?? '');",
        '}',
      ];
    case '/v1/images/generations':
      return [
        'for (const [index, image] of (answer.data ?? []).entries()) {',
        // biome-ignore lint/suspicious/noTemplateCurlyInString: it is a line of the program that is shown.
        "  await writeFile(`image-${index + 1}.png`, Buffer.from(image.b64_json ?? '', 'base64'));",
        '}',
      ];
    case '/v1/videos':
      return [
        'let video = answer;',
        "while (video.status === 'queued' || video.status === 'in_progress') {",
        '  await new Promise((resolve) => setTimeout(resolve, 2000));',
        '  video = await client.videos.retrieve(video.id);',
        '}',
        "if (video.status !== 'completed') throw new Error(video.error?.message);",
        'const content = await client.videos.downloadContent(video.id);',
        "await writeFile('video.mp4', Buffer.from(await content.arrayBuffer()));",
      ];
    case '/v1/audio/speech':
      return [`await writeFile(${JSON.stringify(saveAs ?? 'speech.mp3')}, Buffer.from(await answer.arrayBuffer()));`];
    default:
      return ['console.log(answer);'];
  }
}
