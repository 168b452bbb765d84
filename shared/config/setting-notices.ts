import { readFileSync } from 'node:fs';
import { editDistance } from './edit-distance.ts';

/** A notice for the operator about a name in the environment. */
export interface SettingNotice {
  readonly name: string;
  /** One or two sentences. */
  readonly sentence: string;
}

/** Prefixes that only Sluice uses: an unknown name with one is a mistake. */
const ownPrefix = /^(SLUICE|WORKER)_/;
/** Suffixes shared by many settings, which therefore do not distinguish them. */
const sharedSuffix = /_(API_KEY|BASE_URL)$/;
/** What other programs have behind a vendor's name, by the suffix that stands there here. */
const otherSuffixes: readonly (readonly [suffix: string, others: RegExp])[] = [
  ['_API_KEY', /_(KEY|TOKEN|API_TOKEN|API_SECRET|ACCESS_KEY|SECRET_KEY)$/],
  ['_BASE_URL', /_(URL|API_URL|API_BASE|ENDPOINT|API_ENDPOINT)$/],
];
/** Names that vendors' own libraries, or LiteLLM, have for settings, where the vendor has another name there. */
const otherNames: Readonly<Record<string, string>> = {
  AWS_BEARER_TOKEN_BEDROCK: 'BEDROCK_API_KEY',
  AZURE_OPENAI_API_KEY: 'AZURE_API_KEY',
  AZURE_OPENAI_ENDPOINT: 'AZURE_BASE_URL',
  BFL_API_KEY: 'BLACK_FOREST_LABS_API_KEY',
  CLAUDE_API_KEY: 'ANTHROPIC_API_KEY',
  FIREWORKS_AI_API_KEY: 'FIREWORKS_API_KEY',
  GOOGLE_GENERATIVE_AI_API_KEY: 'GEMINI_API_KEY',
  HOSTED_VLLM_API_BASE: 'VLLM_BASE_URL',
  LUMAAI_API_KEY: 'LUMA_API_KEY',
  NVIDIA_NIM_API_KEY: 'NVIDIA_API_KEY',
  PERPLEXITYAI_API_KEY: 'PERPLEXITY_API_KEY',
  RUNWAYML_API_SECRET: 'RUNWAY_API_KEY',
  TOGETHERAI_API_KEY: 'TOGETHER_API_KEY',
  ZAI_API_KEY: 'ZHIPU_API_KEY',
};
/** Variables of the compose files and the tests, which may also be in the environment. */
const elsewhere: ReadonlySet<string> = new Set([
  ...['SLUICE_BIND', 'SLUICE_DOMAIN', 'SLUICE_MEMORY', 'SLUICE_STOP_GRACE'],
  'SLUICE_SOAK',
]);
const ofTests = /^SLUICE_(TEST|FUZZ|CAMPAIGN)_/;
/** Of many programs; in lower case some of them are settings here. */
const ofProxies = /^(http|https|no|all|ftp)_proxy$/i;
/** Kubernetes passes the addresses of services to each container: a service named `sluice` creates such names. */
const ofKubernetes = /_SERVICE_(HOST|PORT(_\w+)?)$|_PORT(_\d+_(TCP|UDP)(_(PROTO|PORT|ADDR))?)?$/;
const serviceAddress = /^(tcp|udp):\/\/|^\d+$|^(tcp|udp)$|^\d+(\.\d+){3}$|:.*:/i;

/** Whether Kubernetes has set it. The port of a service is an address there (`SLUICE_PORT=tcp://…`): a number is meant as a setting. */
function isOfKubernetes(name: string, value: string): boolean {
  if (!ofKubernetes.test(name) || !serviceAddress.test(value)) return false;
  return !/^\d+$/.test(value) || /_(SERVICE|TCP|UDP)_PORT/.test(name);
}

/** Settings of OpenTelemetry's standard that are not heeded: the values that change nothing, and what to do about the others. */
const unheeded: Readonly<Record<string, readonly [harmless: RegExp, hint: string]>> = {
  OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: [/^$/, 'set OTEL_EXPORTER_OTLP_ENDPOINT, without /v1/traces'],
  OTEL_SDK_DISABLED: [/^(?!true$)/i, 'without OTEL_EXPORTER_OTLP_ENDPOINT nothing is traced'],
  OTEL_TRACES_EXPORTER: [/^otlp$/, 'without OTEL_EXPORTER_OTLP_ENDPOINT nothing is traced'],
  OTEL_EXPORTER_OTLP_PROTOCOL: [/^http\//, 'traces are sent over HTTP, usually to port 4318'],
  OTEL_EXPORTER_OTLP_TRACES_PROTOCOL: [/^http\//, 'traces are sent over HTTP, usually to port 4318'],
  OTEL_RESOURCE_ATTRIBUTES: [/^$/, 'only OTEL_SERVICE_NAME names the service in traces'],
};

/** @param isTraced whether there are traces at all: without, such a name belongs to other programs, unless it says where they go */
function unheededNotices(name: string, value: string, isTraced: boolean): SettingNotice[] {
  const [harmless, hint] = unheeded[name] ?? [];
  if (harmless === undefined || harmless.test(value) || isTraced === name.endsWith('_ENDPOINT')) return [];
  return [{ name, sentence: `${name} has no effect: ${hint}.` }];
}

/**
 * Finds unknown names in the environment that resemble settings, and deprecated ones.
 * @param known the names of all settings
 */
export function settingNotices(
  environment: Readonly<Record<string, string | undefined>>,
  known: readonly string[],
): readonly SettingNotice[] {
  const isKnown = new Set([...known, ...namesInFile(environment.SLUICE_CONFIG)]);
  const notices: SettingNotice[] = [];
  // An environment has many names of other programs: each is compared with all settings, at every start.
  const settings = known.map(comparable);
  const isTraced = Boolean(environment.OTEL_EXPORTER_OTLP_ENDPOINT);
  for (const [name, value] of Object.entries(environment)) {
    if (value && Object.hasOwn(unheeded, name)) {
      notices.push(...unheededNotices(name, value, isTraced));
      continue;
    }
    if (!value || isKnown.has(name) || elsewhere.has(name) || ofTests.test(name) || ofProxies.test(name)) continue;
    if (isOfKubernetes(name, value)) continue;
    const isOurs = ownPrefix.test(name);
    // If the right one is also set, the other belongs to another program.
    const nearest = nearestName(name, isOurs ? settings : settings.filter((other) => !environment[other.name]));
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

/** A name with what it is compared by. */
interface Comparable {
  readonly name: string;
  readonly letters: string;
  readonly maxDistance: number;
}

function comparable(name: string): Comparable {
  return { name, letters: letters(name), maxDistance: maxDistanceOf(name) };
}

/** The setting that a name is probably meant to be. */
function nearestName(name: string, settings: readonly Comparable[]): string | undefined {
  const bare = name.replace(ownPrefix, '');
  const same = settings.find((other) => other.name === bare || other.name === otherwise(bare));
  if (same !== undefined) return same.name;
  const own = comparable(name);
  let nearest: { readonly name: string; readonly distance: number } | undefined;
  for (const other of settings) {
    const maxDistance = Math.min(own.maxDistance, other.maxDistance);
    const distance = editDistance(own.letters, other.letters, maxDistance);
    if (distance <= maxDistance && (nearest === undefined || distance < nearest.distance)) {
      nearest = { name: other.name, distance };
    }
  }
  return nearest?.name;
}

/** The name that a vendor's setting would have here: `FAL_API_KEY` for `FAL_KEY`. */
function otherwise(name: string): string | undefined {
  if (Object.hasOwn(otherNames, name)) return otherNames[name];
  const [suffix, others] = otherSuffixes.find(([, pattern]) => pattern.test(name)) ?? [];
  return others && name.replace(others, suffix ?? '');
}

/** Missing or extra underscores are the most common mistake. */
function letters(name: string): string {
  return name.toUpperCase().replaceAll('_', '');
}

/**
 * Maximum number of wrong letters in a name: fewer distinguishing letters allow fewer. Short names of other programs (`HOSTS`,
 * `COHERE_API_KEY`) are ignored.
 */
function maxDistanceOf(name: string): number {
  const distinct = letters(name.replace(ownPrefix, '').replace(sharedSuffix, '')).length;
  if (ownPrefix.test(name)) return Math.max(1, Math.min(4, Math.floor(distinct / 3)));
  if (letters(name).length < 6) return -1;
  return distinct < 5 ? 0 : distinct < 10 ? 1 : 2;
}

/** Names that the configuration file takes from the environment: `${NAME}`. The file's reader reports problems with the file. */
function namesInFile(path: string | undefined): readonly string[] {
  if (!path) return [];
  try {
    return [...readFileSync(path, 'utf8').matchAll(/\$\{(\w+)\}/g)].map(([, name]) => name as string);
  } catch {
    return [];
  }
}
