// Writes what is listed a second time for its readers: `npm run documents`. A test holds the files against this.
import { writeFileSync } from 'node:fs';
import { environmentExample } from './environment-example.ts';

writeFileSync(new URL('../.env.example', import.meta.url), environmentExample());
