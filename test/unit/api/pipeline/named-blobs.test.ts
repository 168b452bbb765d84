import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { discardUploads } from '../../../../api/admission/admit-job.ts';
import { endpoints } from '../../../../api/endpoints/endpoints.ts';
import type { ParsedRequest } from '../../../../api/pipeline/parsed-request.ts';
import { Upload } from '../../../../shared/blobs/upload.ts';
import { ApiError } from '../../../../shared/errors.ts';
import { goodBodies, namingBlob } from '../../../support/named-blobs.ts';

const id = '2026112213/0123456789ab-0123456789abcdef0123456.png';
const takingJson = endpoints.filter(({ parse }) => parse !== undefined);

/** What is left of a body; undefined where it is refused. */
function parsed(parse: (body: Uint8Array) => ParsedRequest, body: unknown): ParsedRequest | undefined {
  try {
    return parse(Buffer.from(JSON.stringify(body)));
  } catch (error) {
    assert.ok(error instanceof ApiError && error.status < 500, String(error));
    return undefined;
  }
}

/** No upload is made of a parsed request. Its worker makes none of the request's content. */
function assertNoUploads({ files }: ParsedRequest, how: string): void {
  assert.deepEqual(files ?? [], [], how);
}

describe('uploads of a JSON body', () => {
  it('every endpoint that takes JSON accepts its sample bodies', () => {
    for (const { name, parse } of takingJson) {
      const bodies = goodBodies[name] ?? assert.fail(`${name} has no body in test/support/named-blobs.ts`);
      for (const body of bodies) assert.ok(parse && parsed(parse, body), `${name} refuses its body`);
    }
  });

  for (const { name, parse } of takingJson) {
    it(`a JSON body to ${name} has no uploads, wherever and however it names a blob`, () => {
      for (const good of goodBodies[name] ?? []) {
        for (const { how, body } of namingBlob(good, id)) {
          const request = parse && parsed(parse, body);
          if (request !== undefined) assertNoUploads(request, how);
        }
      }
    });
  }

  it('a JSON body has no uploads, whatever extra fields it has', () => {
    const value = fc.jsonValue({ maxDepth: 2 });
    const record = fc.constantFrom('file', 'files', 'uploads', 'blob', 'requestBlob', 'images', 'mask', 'input');
    const cases = takingJson.flatMap(({ name, parse }) => (goodBodies[name] ?? []).map((body) => ({ parse, body })));
    fc.assert(
      fc.property(fc.constantFrom(...cases), record, value, ({ parse, body }, field, given) => {
        const request = parse && parsed(parse, { ...body, [field]: given });
        if (request !== undefined) assertNoUploads(request, field);
      }),
      { numRuns: process.env.SLUICE_SOAK ? 20_000 : 500 },
    );
  });
});

describe('Upload', () => {
  const record = { blob: id, field: 'image', name: 'a.png', type: 'image/png', bytes: 1 };

  it('an Upload does not survive JSON, structuredClone or a spread', () => {
    const upload = new Upload(record);
    assert.deepEqual(upload.record, record);
    assert.doesNotMatch(JSON.stringify(upload), /2026112213/);
    for (const copy of [JSON.parse(JSON.stringify(upload)), structuredClone(upload), { ...upload }, record]) {
      assert.equal(copy instanceof Upload, false);
    }
  });

  it('discardUploads rejects a record that no form brought, and deletes nothing', async () => {
    const blobs = { ofRecords: () => assert.fail('a blob was asked for') };
    await assert.rejects(
      discardUploads({ blobs: blobs as never }, 'account', [record as never]),
      /no form has brought/,
    );
  });
});
