import assert from 'node:assert/strict';
import { after, describe, it } from 'node:test';
import { readInputItems } from '../../../../api/endpoints/responses/earlier-turns.ts';
import { editItems, type ItemsTask } from '../../../../api/endpoints/responses/edit-items.ts';
import { LargeBodies } from '../../../../api/pipeline/large-bodies/large-bodies.ts';
import type { ResponseItem } from '../../../../shared/capabilities/response.ts';
import { ApiError } from '../../../../shared/errors.ts';

const bodies = new LargeBodies();
after(() => bodies.close());

const jobId = '0'.repeat(32);
const items = (count: number): object[] =>
  Array.from({ length: count }, (_, index) => ({ type: 'message', role: 'user', content: `turn ${index}` }));
const list = JSON.stringify([...items(40), { type: 'item_reference', id: 'msg_1' }, { ...items(1)[0], id: 'own' }]);

const tasks: readonly ItemsTask[] = [
  { select: 'page', jobId, page: { limit: 3, order: 'desc', after: undefined } },
  { select: 'page', jobId, page: { limit: 3, order: 'asc', after: `msg_in7_${jobId}` } },
  { select: 'named', jobId, ids: ['own', `msg_in39_${jobId}`, 'missing'] },
  { select: 'all', named: new Map([['msg_1', { text: '{"id":"msg_1"}', media: { imageInputs: 2, mediaBytes: 9 } }]]) },
];

describe('editItems', () => {
  it('editItems selects pages and named items, and puts items in place of references, here and in a thread', async () => {
    const expected = [
      ['own', 'msg_1', `msg_in39_${jobId}`, `msg_in38_${jobId}`],
      [8, 9, 10, 11].map((index) => `msg_in${index}_${jobId}`),
      [`msg_in39_${jobId}`, 'own'],
    ];
    for (const [index, task] of tasks.entries()) {
      const here = editItems(list, task);
      assert.deepEqual(await bodies.edit(new TextEncoder().encode(list), task, 'a'), here);
      const ids = (JSON.parse(here.text) as ResponseItem[]).map(({ id }) => id);
      if (index < expected.length) assert.deepEqual(ids, expected[index]);
      else assert.deepEqual([ids.length, ids[40], here.media], [42, 'msg_1', { imageInputs: 2, mediaBytes: 9 }]);
    }
  });

  it('editItems refuses an unknown item by its parameter, here and in a thread', async () => {
    for (const [task, param] of [
      [{ select: 'page', jobId, page: { limit: 3, order: 'asc', after: 'missing' } }, 'after'],
      [{ select: 'all', named: new Map() }, 'input[40].id'],
    ] as const) {
      const isRefused = (error: unknown): boolean => error instanceof ApiError && error.param === param;
      assert.throws(() => editItems(list, task), isRefused);
      await assert.rejects(bodies.edit(new TextEncoder().encode(list), task, 'a'), isRefused);
    }
  });

  it('a long list of input items is read in a thread, and in no other way', async () => {
    const closed = new LargeBodies();
    await closed.close();
    const read = (count: number): Promise<ResponseItem[] | undefined> => {
      const request = `{"input":${JSON.stringify(items(count))}}`;
      const reading = {
        services: { storedJobs: { findRequest: async () => request }, largeBodies: closed, baseUrl: 'http://a' },
        connection: { wait: (work: Promise<unknown>) => work },
        share: { grow: () => undefined },
      };
      const response = { job: { id: jobId, account: 'a' }, viewed: { viewOptions: { afterInput: 1 } } };
      const [asked, of] = [reading, response] as unknown as Parameters<typeof readInputItems>;
      return readInputItems(asked, of, { select: 'page', jobId, page: { limit: 1, order: 'asc', after: undefined } });
    };
    assert.equal((await read(100))?.length, 2);
    // There are no threads any more.
    await assert.rejects(read(9000), (error) => error instanceof ApiError && error.code === 'service_unavailable');
  });
});
