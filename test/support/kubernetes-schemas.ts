import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';
import type { KubernetesObject } from './helm-chart.ts';

const installed = createRequire(new URL('../deploy/helm/package.json', import.meta.url));

/** Packages by the group of the objects that they describe; all others are Kubernetes' own. */
const packages: Readonly<Record<string, string>> = {
  'keda.sh': '@kubernetes-models/keda',
  'monitoring.coreos.com': '@kubernetes-models/prometheus-operator',
};

interface Model {
  readonly prototype: { validate(this: object): void };
}

/** @throws Error if there is none, as for a misspelt kind or version. */
async function modelOf({ apiVersion, kind }: KubernetesObject): Promise<Model> {
  const [group = '', version] = apiVersion.split('/');
  const name = (version !== undefined && packages[group]) || 'kubernetes-models';
  const path = installed.resolve(`${name}/package.json`).replace(/package\.json$/, `${apiVersion}/${kind}.js`);
  return (await import(pathToFileURL(path).href))[kind] as Model;
}

/**
 * What an API server would refuse in an object: values of a wrong form, and fields that it does not know. The schemas say
 * nothing of the latter, as they ignore them; but they read each field that they know, and what nobody read they do not know.
 */
export async function problemsOf(object: KubernetesObject): Promise<readonly string[]> {
  const model = await modelOf(object).catch(() => undefined);
  if (model === undefined) return [`${object.apiVersion} has no ${object.kind}`];
  const read = new Set<string>();
  try {
    model.prototype.validate.call(watched(object, '', read));
  } catch (error) {
    return [(error as Error).message];
  }
  return pathsOf(object, '').filter((path) => !read.has(path));
}

/** The same value, which notes each field that is read of it. */
function watched<Value extends object>(value: Value, path: string, read: Set<string>): Value {
  return new Proxy(value, {
    get(target, name) {
      const field: unknown = Reflect.get(target, name);
      if (typeof name === 'symbol' || !Object.hasOwn(target, name)) return field;
      const inner = `${path}/${name}`;
      read.add(inner);
      return typeof field === 'object' && field !== null ? watched(field, inner, read) : field;
    },
  });
}

/** The paths of all fields. Below an unknown one there is nothing more to say. */
function pathsOf(value: object, path: string): string[] {
  return Object.entries(value).flatMap(([name, field]) => {
    const inner = `${path}/${name}`;
    return [inner, ...(typeof field === 'object' && field !== null ? pathsOf(field, inner) : [])];
  });
}
