import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { builtProduct } from '../support/gateway.ts';
import type { Defect } from './defects.ts';

const project = fileURLToPath(new URL('../../', import.meta.url));

/** The one file of a build in which a defect's text stands. @throws Error where it stands in none, or more than once. */
export function findPlace({ name, files, text }: Defect, folder = builtProduct): string {
  const found = (readdirSync(folder, { recursive: true }) as string[])
    .filter((path) => files.test(path) && /\.(js|lua)$/.test(path))
    .flatMap((path) => Array<string>(readFileSync(join(folder, path), 'utf8').split(text).length - 1).fill(path));
  if (found.length === 1) return found[0] as string;
  throw new Error(
    `"${name}" has ${found.length} places in the build (${found.join(', ')}): plant it anew in defects.ts`,
  );
}

/** A copy of the build with one defect in it. */
export class PlantedProduct {
  readonly #parent = mkdtempSync(join(tmpdir(), 'sluice-test-planted-'));
  readonly folder = join(this.#parent, 'dist');

  constructor(defect: Defect) {
    cpSync(builtProduct, this.folder, { recursive: true });
    // Where the bundles look for what is not bundled.
    symlinkSync(join(project, 'node_modules'), join(this.#parent, 'node_modules'));
    writeFileSync(join(this.#parent, 'package.json'), readFileSync(join(project, 'package.json')));
    const path = join(this.folder, findPlace(defect, this.folder));
    writeFileSync(
      path,
      readFileSync(path, 'utf8').replace(defect.text, () => defect.replacement),
    );
  }

  remove(): void {
    rmSync(this.#parent, { recursive: true, force: true });
  }
}
