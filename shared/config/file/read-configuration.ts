import type { z } from 'zod';
import { ConfigError } from '../config-error.ts';
import { type ConfigurationFile, configurationFile } from './configuration-file.ts';
import { fillPlaceholders } from './fill-placeholders.ts';
import type { Mistake } from './mistake.ts';
import { YamlSource } from './yaml-source.ts';

/** The parsed configuration file, with its source for mistakes found while applying it. */
export interface Configuration {
  readonly file: ConfigurationFile;
  readonly source: Pick<YamlSource, 'error'>;
}

/**
 * Reads the operator's YAML file.
 * @param environment values for `${NAME}` in addresses and keys of vendors
 * @param isAgain whether it was read before: an empty one is then taken for one that is just being written
 * @throws ConfigError with every mistake of syntax or shape, one per line: file, line, column, and what is expected there.
 */
export function readConfiguration(
  path: string,
  environment: Readonly<Record<string, unknown>>,
  isAgain = false,
): Configuration {
  const source = new YamlSource(path);
  if (isAgain && source.isEmpty) {
    throw new ConfigError(
      `The configuration file ${path} is empty, as one is that is just being written: to have nothing in it, write {}.`,
    );
  }
  const { value, mistakes } = fillPlaceholders(source.value, environment);
  const parsed = configurationFile.safeParse(value);
  const wrong = [...mistakes, ...(parsed.error?.issues ?? []).flatMap(mistakesOf)];
  if (parsed.data === undefined || wrong.length > 0) throw source.error(wrong);
  return { file: parsed.data, source };
}

function mistakesOf(issue: z.core.$ZodIssue): Mistake[] {
  const path = issue.path.map((segment) => (typeof segment === 'number' ? segment : String(segment)));
  if (issue.code === 'unrecognized_keys') {
    return issue.keys.map((key) => ({ path: [...path, key], message: issue.message, isKey: true }));
  }
  // The path already contains an invalid name.
  if (issue.code === 'invalid_key') return [{ path, message: issue.issues[0]?.message ?? issue.message, isKey: true }];
  return [{ path, message: issue.message, showsValue: true }];
}
