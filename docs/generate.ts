// Writes what is listed a second time for its readers: `npm run documents`. A test holds the files against this.
import { writeFileSync } from 'node:fs';
import { generatedDocuments } from './generated-documents.ts';

for (const { path, text } of generatedDocuments) writeFileSync(new URL(`../${path}`, import.meta.url), text());
