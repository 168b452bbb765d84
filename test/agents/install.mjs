// Installs the agents and libraries that are tested as clients: about 900 MB in test/agents/node_modules.
import { dirname } from 'node:path';
import { fileURLToPath } from 'node:url';
import { installPackages } from '../install-packages.mjs';

await installPackages(dirname(fileURLToPath(import.meta.url)), 'the agents that are tested as clients (test/agents)');
