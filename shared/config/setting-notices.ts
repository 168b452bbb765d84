import { readFileSync } from 'node:fs';
import { editDistance } from './edit-distance.ts';

/** Something to tell the operator about a name in the environment. */
export interface SettingNotice {
  readonly name: string;
  /** One sentence, or two. */
  readonly sentence: string;
}

/** Beginnings of names that nobody but Sluice uses: whatever else begins so is a mistake. */
const ownPrefix = /^(SLUICE|WORKER)_/;
/** Endings that many settings share, and so tell none from another. */
const sharedSuffix = /_(API_KEY|BASE_URL)$/;
/** Variables of the compose files and of the tests, which may be in the environment as well. */
const elsewhere: ReadonlySet<string> = new Set([
  ...['SLUICE_BIND', 'SLUICE_DOMAIN', 'SLUICE_MEMORY', 'SLUICE_STOP_GRACE'],
  'SLUICE_SOAK',
]);
const ofTests = /^SLUICE_(TEST|FUZZ|CAMPAIGN)_/;
/** Kubernetes tells each container where the services are: a service named `sluice` makes such names. */
const ofKubernetes = /_SERVICE_(HOST|PORT(_\w+)?)$|_PORT(_\d+_(TCP|UDP)(_(PROTO|PORT|ADDR))?)?$/;
const serviceAddress = /^(tcp|udp):\/\/|^\d+$|^(tcp|udp)$|^\d+(\.\d+){3}$|:.*:/i;

/** @param known the names of all settings */
export function settingNotices(
  environment: Readonly<Record<string, string | undefined>>,
  known: readonly string[],
): readonly SettingNotice[] {
  const isKnown = new Set([...known, ...namesInFile(environment.SLUICE_CONFIG)]);
  const notices: SettingNotice[] = [];
  for (const [name, value] of Object.entries(environment)) {
    if (!value || isKnown.has(name) || elsewhere.has(name) || ofTests.test(name)) continue;
    if (ofKubernetes.test(name) && serviceAddress.test(value)) continue;
    const isOurs = ownPrefix.test(name);
    // Where the right one is set, too, the other is somebody else's.
    const nearest = nearestName(name, isOurs ? known : known.filter((other) => !environment[other]));
    if (!isOurs && nearest === undefined) continue;
    const hint = nearest === undefined ? '' : ` Did you mean ${nearest}?`;
    notices.push({ name, sentence: `${name} is not a setting, so it has no effect.${hint}` });
  }
  if (environment.SLUICE_API_KEY && !environment.SLUICE_BOOTSTRAP_KEY) {
    notices.push({
      name: 'SLUICE_API_KEY',
      sentence:
        'SLUICE_API_KEY, which clients use for their key, became a key of the first account: set SLUICE_BOOTSTRAP_KEY instead. The old name still works.',
    });
  }
  return notices;
}

/** The name of a setting that another name is probably meant to be. */
function nearestName(name: string, known: readonly string[]): string | undefined {
  let nearest: { readonly name: string; readonly distance: number } | undefined;
  for (const other of known) {
    const furthest = Math.min(furthestOf(name), furthestOf(other));
    const distance = editDistance(letters(name), letters(other), furthest);
    if (distance <= furthest && (nearest === undefined || distance < nearest.distance)) {
      nearest = { name: other, distance };
    }
  }
  return nearest?.name;
}

/** Underscores are the first thing to go wrong. */
function letters(name: string): string {
  return name.toUpperCase().replaceAll('_', '');
}

/**
 * How many letters may be wrong in a name: the fewer letters tell it from others, the less. Short names that are meant for
 * other programs (`HOSTS`, `COHERE_API_KEY`) are left alone.
 */
function furthestOf(name: string): number {
  const distinct = letters(name.replace(ownPrefix, '').replace(sharedSuffix, '')).length;
  if (ownPrefix.test(name)) return Math.max(1, Math.min(4, Math.floor(distinct / 3)));
  if (letters(name).length < 6) return -1;
  return distinct < 5 ? 0 : distinct < 10 ? 1 : 2;
}

/** Names that the operator's file takes from the environment: `${NAME}`. What is wrong with the file is told by its reader. */
function namesInFile(path: string | undefined): readonly string[] {
  if (!path) return [];
  try {
    return [...readFileSync(path, 'utf8').matchAll(/\$\{(\w+)\}/g)].map(([, name]) => name as string);
  } catch {
    return [];
  }
}
