// Holds the answers that `keep-answers.mjs` has kept in a folder against the gateway's own OpenAPI document:
// `node --import tsx test/support/check-answers.ts FOLDER`. Exits with 1 where one is not as the document says, or where there are none.
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { DocumentedAnswers, readAnswers } from './documented-answers.ts';

const folder = process.argv[2] as string;
const documented = new DocumentedAnswers();
const faults = new Map<string, string>();
let count = 0;
for (const file of readdirSync(folder)) {
  for (const answer of readAnswers(join(folder, file))) {
    count++;
    const fault = documented.fault(answer);
    const { method, url, body } = answer;
    if (fault !== undefined) faults.set(fault, `${file}: ${method} ${url}: ${body?.slice(0, 400) ?? ''}`);
  }
}
console.log(`\n${count} answers held against /openapi.json, ${faults.size} faults`);
for (const [fault, request] of faults) console.error(`${fault}\n  ${request}`);
process.exitCode = count > 0 && faults.size === 0 ? 0 : 1;
