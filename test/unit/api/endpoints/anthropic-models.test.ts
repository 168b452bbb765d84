import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type Anthropic from '@anthropic-ai/sdk';
import { anthropicModelList } from '../../../../api/endpoints/models/anthropic-models.ts';
import type { Model } from '../../../../shared/catalogue/models.ts';

const model = (id: string, more: Partial<Model> = {}): Model => ({
  ...{ id, created: 1_700_000_000, ownedBy: 'test', capability: 'chat', routes: [{ vendor: 'openai', model: id }] },
  ...more,
});
const models = [model('stays'), model('goes', { deprecatedAt: Date.parse('2027-01-01T00:00:00Z') / 1000 })];

describe('anthropicModelList', () => {
  const listed = (query: Record<string, string | string[]>): Anthropic.ModelInfo[] => [
    ...anthropicModelList(models, query).data,
  ];
  const ids = (query: Record<string, string | string[]>): string[] => listed(query).map(({ id }) => id);

  it('anthropicModelList calls a model deprecated whose end is announced, and tells its day', () => {
    assert.deepEqual(
      listed({}).map(({ id, lifecycle, retires_at }) => [id, lifecycle, retires_at]),
      [
        ['stays', 'active', null],
        ['goes', 'deprecated', '2027-01-01T00:00:00.000Z'],
      ],
    );
  });

  it('anthropicModelList filters by the stages that are asked for', () => {
    assert.deepEqual(ids({ lifecycle: 'active' }), ['stays']);
    assert.deepEqual(ids({ 'lifecycle[]': ['deprecated'] }), ['goes']);
    assert.deepEqual(ids({ 'lifecycle[]': ['active', 'deprecated'] }), ['stays', 'goes']);
    assert.deepEqual(ids({ lifecycle: 'retired' }), []);
  });
});
