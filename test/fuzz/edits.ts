import type { SeededRandom } from '../support/seeded-random.ts';
import { hostileHeaders, hostileNames, hostilePaths, hostileQueries, hostileValues } from './hostile.ts';
import type { FormPart, Sample } from './samples.ts';

/** A request about to be sent, as it stands before it is bytes. */
export interface Draft {
  method: string;
  /** With the ids in it. */
  path: string;
  query: string;
  headers: Record<string, string>;
  json: unknown;
  form: readonly FormPart[] | undefined;
  /** What becomes of the body's bytes. */
  spoil: ((bytes: Buffer) => Buffer)[];
}

/** One change to a valid request. */
export interface Edit {
  /** What it does, short enough for a report. */
  readonly name: string;
  apply(draft: Draft): void;
}

/** Draws one change that fits the sample. */
export function drawEdit(random: SeededRandom, sample: Sample): Edit {
  const body: [number, () => Edit][] =
    sample.json !== undefined
      ? [
          [60, () => jsonEdit(random, sample.json)],
          [6, () => spoilEdit(random)],
        ]
      : sample.form !== undefined
        ? [
            [40, () => formEdit(random, sample.form as readonly FormPart[])],
            [8, () => spoilEdit(random)],
          ]
        : [[3, () => unwantedBody(random)]];
  const drawn = random.weighted<() => Edit>([
    ...body,
    [10, () => headerEdit(random)],
    [sample.route.includes(':') || sample.route.includes('*') ? 20 : 2, () => pathEdit(random)],
    [sample.query ? 20 : 3, () => queryEdit(random, sample.query ?? '')],
    [1, () => methodEdit(random)],
  ]);
  return drawn();
}

type Path = readonly (string | number)[];

/** Every place in a value, the value itself first. */
function placesOf(value: unknown, path: Path = []): Path[] {
  if (typeof value !== 'object' || value === null) return [path];
  return [path, ...Object.entries(value).flatMap(([key, inner]) => placesOf(inner, [...path, keyOf(value, key)]))];
}

function keyOf(value: object, key: string): string | number {
  return Array.isArray(value) ? Number(key) : key;
}

function showPath(path: Path): string {
  return path.map((step) => (typeof step === 'number' ? `[${step}]` : `.${step}`)).join('') || '(root)';
}

function jsonEdit(random: SeededRandom, json: unknown): Edit {
  const path = random.pick(placesOf(json));
  const [label, value] = random.pick(hostileValues);
  const [keyLabel, key] = random.pick(hostileNames);
  const shown = showPath(path);
  return random.pick<Edit>([
    // Most often: one place is of the wrong kind.
    ...Array.from({ length: 5 }, () => ({
      name: `json ${shown} = ${label}`,
      apply: (draft: Draft) => change(draft, path, () => value()),
    })),
    { name: `json ${shown} removed`, apply: (draft) => change(draft, path, () => undefined) },
    { name: `json [${shown}]`, apply: (draft) => change(draft, path, (old) => [old]) },
    { name: `json ${shown} = {value: …}`, apply: (draft) => change(draft, path, (old) => ({ value: old })) },
    { name: `json ${shown} 300 times`, apply: (draft) => change(draft, path, (old) => repeated(old)) },
    { name: `json ${shown} with ${label} added`, apply: (draft) => change(draft, path, (old) => added(old, value())) },
    {
      name: `json ${shown}.${keyLabel} = ${label}`,
      apply: (draft) => change(draft, path, (old) => withKey(old, key, value())),
    },
    { name: `json ${shown} as text`, apply: (draft) => change(draft, path, (old) => JSON.stringify(old)) },
  ]);
}

/** Not of what is large by itself: what would be too large a body says nothing new. */
function repeated(old: unknown): unknown {
  return Array(JSON.stringify(old ?? null).length > 10_000 ? 3 : 300).fill(old);
}

/** The kinds of JSON: wherever code expects one of them, another one must be refused. */
const otherKinds = ['null', '0', '""', '[]', '{}', '[null]', 'true', '"a text"', '{type: null}'];

/** Every single change by which a place of a sample is of another kind, or is not there. */
export function everyKindOfPlace({ json }: Sample): Edit[] {
  if (json === undefined) return [];
  const values = hostileValues.filter(([label]) => otherKinds.includes(label));
  return placesOf(json).flatMap((path) => [
    { name: `json ${showPath(path)} removed`, apply: (draft: Draft) => change(draft, path, () => undefined) },
    ...values.map(([label, value]) => ({
      name: `json ${showPath(path)} = ${label}`,
      apply: (draft: Draft) => change(draft, path, () => value()),
    })),
  ]);
}

function added(old: unknown, value: unknown): unknown {
  return Array.isArray(old) ? [value, ...old, value] : value;
}

function withKey(old: unknown, key: string, value: unknown): unknown {
  if (typeof old !== 'object' || old === null || Array.isArray(old)) return { [key]: value };
  // A key such as __proto__ must stand in the JSON as any other.
  const copy = Object.assign(Object.create(null), old);
  Object.defineProperty(copy, key, { value, enumerable: true, configurable: true, writable: true });
  return copy;
}

/** Puts another value at a place; a place that an earlier change has taken away is left alone. */
function change(draft: Draft, path: Path, to: (old: unknown) => unknown): void {
  if (path.length === 0) {
    draft.json = to(draft.json);
    return;
  }
  let holder = draft.json as Record<string | number, unknown>;
  for (const step of path.slice(0, -1)) {
    const inner = holder?.[step];
    if (typeof inner !== 'object' || inner === null) return;
    holder = inner as typeof holder;
  }
  const last = path.at(-1) as string | number;
  if (typeof holder !== 'object' || holder === null) return;
  const value = to(holder[last]);
  if (value === undefined && Array.isArray(holder)) holder.splice(Number(last), 1);
  else if (value === undefined) delete holder[last];
  else holder[last] = value;
}

function spoilEdit(random: SeededRandom): Edit {
  const at = random.next();
  const place = (bytes: Buffer): number => Math.floor(at * bytes.length);
  const insert = (name: string, ...what: number[]): Edit => ({
    name: `body with ${name} inside`,
    apply: ({ spoil }) => {
      spoil.push((bytes) =>
        Buffer.concat([bytes.subarray(0, place(bytes)), Buffer.from(what), bytes.subarray(place(bytes))]),
      );
    },
  });
  const become = (name: string, to: (bytes: Buffer) => Buffer): Edit => ({
    name: `body ${name}`,
    apply: ({ spoil }) => {
      spoil.push(to);
    },
  });
  return random.pick([
    insert('a zero byte', 0),
    insert('invalid UTF-8', 0xc3, 0x28),
    insert('a CESU surrogate', 0xed, 0xa0, 0x80),
    insert('a quote', 0x22),
    insert('a brace', 0x7b),
    insert('a line break', 0x0d, 0x0a),
    become('cut off', (bytes) => bytes.subarray(0, place(bytes))),
    become('empty', () => Buffer.alloc(0)),
    become('twice', (bytes) => Buffer.concat([bytes, bytes])),
    become('after a byte order mark', (bytes) => Buffer.concat([Buffer.from([0xef, 0xbb, 0xbf]), bytes])),
    become('with NaN in place of numbers', (bytes) =>
      Buffer.from(bytes.toString('latin1').replace(/:\d+/g, ':NaN'), 'latin1'),
    ),
    become('with 1e999 in place of numbers', (bytes) =>
      Buffer.from(bytes.toString('latin1').replace(/:[\d.]+/g, ':1e999'), 'latin1'),
    ),
    become('with every key twice', (bytes) =>
      Buffer.from(bytes.toString('latin1').replace(/\{("\w+":)/g, '{$1null,$1'), 'latin1'),
    ),
    become('with lone surrogates in its texts', (bytes) =>
      Buffer.from(bytes.toString('latin1').replace(/:"/g, ':"\\ud800'), 'latin1'),
    ),
    become('a thousand levels deep', () => Buffer.from(`${'['.repeat(1000)}${']'.repeat(1000)}`)),
    become('60 levels deep', () => Buffer.from(`${'{"messages":'.repeat(60)}1${'}'.repeat(60)}`)),
  ]);
}

function unwantedBody(random: SeededRandom): Edit {
  const [label, value] = random.pick(hostileValues);
  return {
    name: `an unwanted body ${label}`,
    apply: (draft) => {
      draft.json = value();
    },
  };
}

function headerEdit(random: SeededRandom): Edit {
  const [name, value] = random.pick(hostileHeaders);
  return {
    name: `header ${name}: ${value.slice(0, 40)}`,
    apply: ({ headers }) => {
      headers[name] = value;
    },
  };
}

function pathEdit(random: SeededRandom): Edit {
  const [label, id] = random.pick(hostilePaths);
  return {
    name: `path with ${label}`,
    apply: (draft) => {
      const steps = draft.path.split('/');
      // The part with an id in it, or else the last.
      const at = steps.findIndex((step) => step.startsWith('$'));
      steps[at < 0 ? steps.length - 1 : at] = id;
      draft.path = steps.join('/');
    },
  };
}

function queryEdit(random: SeededRandom, query: string): Edit {
  const names = [...new URLSearchParams(query).keys(), 'limit', 'after', 'order', 'starting_after'];
  const name = random.pick(names);
  const value = random.pick(hostileQueries);
  return random.pick<Edit>([
    { name: `query ${name}=${value.slice(0, 40)}`, apply: (draft) => setQuery(draft, name, `${name}=${value}`) },
    { name: `query ${name} twice`, apply: (draft) => setQuery(draft, name, `${name}=1&${name}=${value}`) },
    { name: `query ${name}[]`, apply: (draft) => setQuery(draft, name, `${name}[]=${value}&${name}[a]=1`) },
    { name: `query ${name} without a value`, apply: (draft) => setQuery(draft, name, name) },
  ]);
}

function setQuery(draft: Draft, name: string, to: string): void {
  const others = draft.query.split('&').filter((pair) => pair !== '' && !pair.startsWith(`${name}=`));
  draft.query = [...others, to].join('&');
}

function methodEdit(random: SeededRandom): Edit {
  const method = random.pick(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'PROPFIND', 'LINK']);
  return {
    name: `method ${method}`,
    apply: (draft) => {
      draft.method = method;
    },
  };
}

function formEdit(random: SeededRandom, form: readonly FormPart[]): Edit {
  const at = random.int(0, form.length - 1);
  const part = form[at] as FormPart;
  const [label, value] = random.pick(hostileValues);
  const [keyLabel, key] = random.pick(hostileNames);
  const to = (name: string, parts: readonly FormPart[]): Edit => ({
    name: `form ${name}`,
    apply: (draft) => {
      draft.form = parts;
    },
  });
  const replaced = (...parts: FormPart[]): FormPart[] => [...form.slice(0, at), ...parts, ...form.slice(at + 1)];
  const text = (): string => {
    const made = value();
    return typeof made === 'string' ? made : (JSON.stringify(made) ?? '');
  };
  return random.pick<() => Edit>([
    () => to(`${part.name} = ${label}`, replaced({ ...part, value: text() })),
    () => to(`${part.name} = ${label}`, replaced({ ...part, value: text() })),
    () => to(`without ${part.name}`, replaced()),
    () => to(`${part.name} twice`, [...form, part]),
    () => to(`${part.name} 30 times`, [...form, ...Array<FormPart>(30).fill(part)]),
    () => to(`${part.name} named ${keyLabel}`, replaced({ ...part, name: key })),
    () => to(`${part.name} as a file`, replaced({ ...part, file: { name: key, type: 'text/html' } })),
    () => to(`${part.name} as a field`, replaced({ name: part.name, value: part.value })),
    () => to(`${part.name} empty`, replaced({ ...part, value: '' })),
    () => to(`${part.name} of type ${keyLabel}`, replaced({ ...part, file: { name: 'a', type: key } })),
    () => to(`a field ${keyLabel} = ${label}`, [...form, { name: key, value: text() }]),
    () => to('without a part', []),
  ])();
}
