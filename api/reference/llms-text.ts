import { operations, pathOf, type ReferenceFacts } from './document.ts';

/** The text at `/llms.txt`, by which a language model can call the gateway (https://llmstxt.org). */
export function llmsText({ baseUrl, models }: ReferenceFacts): string {
  const endpoints = Object.entries(operations)
    .map(([route, { summary }]) => [route.split(' '), summary] as const)
    .filter(([[, pattern = '']]) => pattern.startsWith('/v1/'))
    .map(([[method, pattern = ''], summary]) => `- ${method} ${pathOf(pattern)}: ${summary}`);
  return `# Sluice

> A queue-backed model gateway: the APIs of OpenAI and Anthropic in front of many vendors, under one base URL. Every request
> is a job: it can be followed, resumed and cancelled.

- Base URL for OpenAI clients: ${baseUrl}/v1
- Base URL for Anthropic clients: ${baseUrl}
- Key: \`Authorization: Bearer sk-sluice-...\`, or \`x-api-key\`
- A chat model: ${models.chat}; all models: GET ${baseUrl}/v1/models
- \`Prefer: respond-async\` on any POST returns 202 with a job; \`Idempotency-Key\` makes a repeat safe.

## Docs

- [API reference](${baseUrl}/docs)
- [OpenAPI document](${baseUrl}/openapi.json)
- [Start page with examples](${baseUrl}/)

## Endpoints

${endpoints.join('\n')}
`;
}
