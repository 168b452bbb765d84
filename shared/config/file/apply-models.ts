import { stillOffered } from '../../catalogue/catalogue.ts';
import type { Model } from '../../catalogue/model.ts';
import { findVendorRow } from '../../vendors/vendors.ts';
import { changeModel } from './change-model.ts';
import type { ConfigurationFile, ModelEntry } from './configuration-file.ts';
import { expected, type Mistake } from './mistake.ts';

type Entries = readonly (readonly [id: string, entry: ModelEntry])[];

/**
 * The table's models as changed by the file, in the table's order; new ones come last.
 * @param file its models, and its vendors, which routes may name
 */
export function applyModels(
  table: readonly Model[],
  file: Pick<ConfigurationFile, 'vendors' | 'models'>,
): { readonly models: readonly Model[]; readonly mistakes: readonly Mistake[] } {
  const mistakes: Mistake[] = [];
  const entries: Entries = Object.entries(file.models);
  const aliases = new Map(entries.flatMap(([id, { aliasOf }]) => (aliasOf === undefined ? [] : [[id, aliasOf]])));
  const hidden = new Set(entries.flatMap(([id, { hide }]) => (hide ? [id] : [])));
  for (const [id, entry] of entries) {
    checkAlone(id, entry, mistakes);
    checkVendors(id, entry, file.vendors, mistakes);
  }
  // By ids of the table: hidden ones are still included, as aliases may refer to them.
  const rows = new Map(table.map((model) => [model.id, model]));
  for (const [id, entry] of entries) {
    const before = rows.get(id);
    if (before === undefined && (entry.hide || entry.rename !== undefined)) {
      mistakes.push({ path: ['models', id], message: 'expected the id of a model of the catalogue' });
    } else if (!entry.hide && entry.aliasOf === undefined) {
      const changed = changeModel(id, before, entry, mistakes);
      if (changed !== undefined) rows.set(id, changed);
    }
  }
  checkRenames(entries, rows, hidden, mistakes);
  const named = new Map<string, Model>();
  for (const [id, model] of rows) {
    const name = file.models[id]?.rename ?? id;
    if (!hidden.has(id)) named.set(name, { ...model, id: name });
  }
  const targets = new Map(named);
  for (const [id, aliasOf] of aliases) {
    const unseen = hidden.has(aliasOf) ? rows.get(aliasOf) : undefined;
    const target = aliases.has(aliasOf) ? undefined : (targets.get(aliasOf) ?? unseen);
    if (target === undefined) mistakes.push(expected(['models', id, 'alias_of'], 'the id of a model, not of an alias'));
    else named.set(id, { ...target, id, aliasOf });
  }
  checkFallbacks(entries, named, mistakes);
  return { models: [...named.values()], mistakes };
}

/** An entry that hides a model or makes it an alias must contain nothing else. */
function checkAlone(id: string, entry: ModelEntry, mistakes: Mistake[]): void {
  const alone = (entry.hide && 'hide') || (entry.aliasOf !== undefined && 'alias_of');
  if (alone && Object.keys(entry).length > 1) {
    mistakes.push({ path: ['models', id, alone], message: 'nothing else may be said of this model then' });
  }
}

/** A known vendor that is off is not a mistake: its models are merely unavailable. */
function checkVendors(
  id: string,
  { routes = [] }: ModelEntry,
  vendors: ConfigurationFile['vendors'],
  mistakes: Mistake[],
): void {
  const seen = new Set<string>();
  for (const [index, { vendor, model }] of routes.entries()) {
    const path = ['models', id, 'routes', index];
    if (findVendorRow(vendor) === undefined && !Object.hasOwn(vendors, vendor)) {
      mistakes.push(expected([...path, 'vendor'], 'a vendor of the table or of this file'));
    }
    const name = `${vendor}/${model}`;
    if (seen.has(name)) mistakes.push({ path, message: 'this vendor and model stand in a route before' });
    seen.add(name);
  }
}

/** A new name must not be that of another model or alias, unless that one is renamed or hidden, too. */
function checkRenames(
  entries: Entries,
  rows: ReadonlyMap<string, Model>,
  hidden: ReadonlySet<string>,
  mistakes: Mistake[],
): void {
  const renames = entries.flatMap(([id, { rename }]) =>
    rename === undefined || rename === id ? [] : [{ id, rename }],
  );
  const taken = new Set([...rows.keys(), ...entries.map(([id]) => id)].filter((id) => !hidden.has(id)));
  for (const { id } of renames) taken.delete(id);
  for (const { id, rename } of renames) {
    if (taken.has(rename)) mistakes.push(expected(['models', id, 'rename'], 'an id that no other model has'));
    taken.add(rename);
  }
}

function checkFallbacks(entries: Entries, named: ReadonlyMap<string, Model>, mistakes: Mistake[]): void {
  for (const [id, { fallbacks = [], rename = id }] of entries) {
    for (const [index, fallback] of fallbacks.entries()) {
      const path = ['models', id, 'fallbacks', index];
      const other = named.get(fallback);
      const capability = named.get(rename)?.capability;
      if (other === undefined) mistakes.push(expected(path, 'the id of a model that is not hidden'));
      else if (fallback === rename) mistakes.push(expected(path, 'another model than this one'));
      else if (capability !== undefined && other.capability !== capability) {
        mistakes.push(expected(path, `a model of the capability ${capability}`));
      } else if (stillOffered(other).length === 0) {
        // It would have no route, and nobody would be told: a request that names it is.
        const instead = other.replacement === undefined ? '' : `, such as ${other.replacement}`;
        mistakes.push(expected(path, `a model that its vendor has not shut down${instead}`));
      }
    }
  }
}
