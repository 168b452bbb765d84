// `node test/on-main-node.mjs ARGUMENTS …`: runs Node with these arguments in the version that counts.
import { spawn } from 'node:child_process';
import { findNode, mainVersion, withNode } from './node-versions/find-node.mjs';

const node = await findNode(mainVersion);
const child = spawn(node, process.argv.slice(2), { stdio: 'inherit', env: withNode(node, process.env) });
// Both get a terminal's Ctrl-C; this one waits for the other's end.
process.on('SIGINT', () => {});
process.on('SIGTERM', () => child.kill('SIGTERM'));
child.on('exit', (code) => process.exit(code ?? 1));
