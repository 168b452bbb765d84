import type { SeededRandom } from '../support/seeded-random.ts';
import { type Draft, drawEdit, type Edit, everyKindOfPlace } from './edits.ts';
import type { FormPart, Sample } from './samples.ts';
import type { Tenant } from './tenants.ts';

/** A request that can be sent, and sent again. */
export interface FuzzRequest {
  readonly sample: Sample;
  readonly edits: readonly Edit[];
}

/** Bytes of a request. */
export interface WireRequest {
  readonly method: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string | number>>;
  readonly body: Buffer | undefined;
}

/** A sample with up to three changes; one in twenty as it is. */
export function drawRequest(random: SeededRandom, samples: readonly Sample[]): FuzzRequest {
  const sample = random.pick(samples);
  const count = random.weighted([
    [1, 0],
    [12, 1],
    [5, 2],
    [2, 3],
  ]);
  return { sample, edits: Array.from({ length: count }, () => drawEdit(random, sample)) };
}

/** Every sample as it is, and with each of its places of every other kind. */
export function everyKind(samples: readonly Sample[]): FuzzRequest[] {
  return samples.flatMap((sample) => [
    { sample, edits: [] },
    ...everyKindOfPlace(sample).map((edit) => ({ sample, edits: [edit] })),
  ]);
}

/** Makes the bytes of a request. */
export function toWire({ sample, edits }: FuzzRequest, tenant: Tenant): WireRequest {
  const [method = '', route = ''] = sample.route.split(' ');
  const draft: Draft = {
    method: method === 'ALL' ? 'POST' : method,
    path: route
      .replace('{/*path}', '')
      .replace('*path', 'sign-in/email')
      .replace('*id', 'sandbox-chat')
      .replace(/:\w+/g, `$${kindOf(route)}`),
    query: sample.query ?? '',
    headers: {},
    json: structuredClone(sample.json),
    form: sample.form,
    spoil: [],
  };
  for (const edit of edits) edit.apply(draft);
  let body = draft.form === undefined ? jsonBody(draft.json) : formBody(draft.form);
  for (const spoil of draft.spoil) body = spoil(body ?? Buffer.alloc(0));
  if (body !== undefined) body = Buffer.from(fillIn(body.toString('latin1'), tenant, route), 'latin1');
  const type = draft.form === undefined ? 'application/json' : `multipart/form-data; boundary=${boundary}`;
  const path = fillIn(draft.path, tenant, route) + (draft.query === '' ? '' : `?${fillIn(draft.query, tenant, route)}`);
  return {
    ...{ method: draft.method, body },
    // What HTTP itself does not let through is escaped, so that the rest gets there.
    path: path.replace(/[^\x21-\x7e]/g, '%20'),
    headers: {
      ...tenant.headers[sample.credential],
      ...(body !== undefined && { 'content-type': type, 'content-length': body.length }),
      ...draft.headers,
    },
  };
}

/** What kind of id a path names. */
function kindOf(path: string): 'job' | 'video' | 'response' | 'key' | 'account' | 'user' {
  if (path.includes('/jobs/')) return 'job';
  if (path.includes('/videos/')) return 'video';
  if (path.includes('/responses/')) return 'response';
  if (path.includes('/keys/')) return 'key';
  return path.includes('/users/') ? 'user' : 'account';
}

function fillIn(text: string, { ids, otherIds }: Tenant, path: string): string {
  return text.replace(/\$(other|job|video|response|key|account|user)\b/g, (_, name: string) =>
    name === 'other' ? (otherIds[kindOf(path)] ?? '') : (ids[name as keyof typeof ids] ?? ''),
  );
}

function jsonBody(json: unknown): Buffer | undefined {
  const text = JSON.stringify(json);
  return text === undefined ? undefined : Buffer.from(text);
}

const boundary = 'fuzz-boundary';

function formBody(form: readonly FormPart[]): Buffer {
  const parts = form.map(({ name, value, file }) => {
    const fileName = file === undefined ? '' : `; filename="${file.name}"`;
    const type = file === undefined ? '' : `\r\nContent-Type: ${file.type}`;
    return `--${boundary}\r\nContent-Disposition: form-data; name="${name}"${fileName}${type}\r\n\r\n${value}\r\n`;
  });
  return Buffer.from(`${parts.join('')}--${boundary}--\r\n`, 'latin1');
}
