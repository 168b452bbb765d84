// Writes the files that repeat data of the source for readers: `npm run documents`. A test compares them with the source.
import { writeFileSync } from 'node:fs';
import { generatedDocuments } from './generated-documents.ts';

for (const { path, text } of generatedDocuments) writeFileSync(new URL(`../${path}`, import.meta.url), text());
