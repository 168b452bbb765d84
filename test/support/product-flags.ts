import { readFileSync } from 'node:fs';
import { join } from 'node:path';

/**
 * Node's flags with which a checkout starts a role, by the script of its package.json.
 * @param root the checkout's folder
 */
export function productFlags(root: string, role: 'api' | 'worker'): string[] {
  const { scripts } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
  return String(scripts[role])
    .split(' ')
    .slice(1)
    .filter((word) => word.startsWith('--'));
}
