import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { z } from 'zod';
import { boundsSettings, readBoundsSettings } from '../../../../shared/config/bounds-settings.ts';

const gibibyte = 1024 ** 3;
const settings = z.object(boundsSettings);
const read = (memory: number, env: Record<string, string> = {}) => readBoundsSettings(settings.parse(env), memory);

describe('bounds on memory', () => {
  it('bounds on memory leave more than half of that of the containers of compose and Helm to the process', () => {
    const { bodyBytes, unsentBytes } = read(2 * gibibyte);
    // Conversations have as much as bodies.
    assert.ok(2 * bodyBytes + unsentBytes < gibibyte);
    assert.ok(bodyBytes / 4 > 20 * 1024 * 1024, 'a key may send one of the largest bodies');
  });

  it('bounds on memory grow with it up to a point, and are as they are set', () => {
    assert.deepEqual(read(64 * gibibyte), read(8 * gibibyte));
    assert.equal(read(64 * gibibyte).bodyBytes, gibibyte);
    assert.equal(read(0.25 * gibibyte).bodyBytes, 128 * 1024 ** 2);
    const { bodyBytes, unsentBytes } = read(gibibyte, { SLUICE_BODIES_MIB: '900', SLUICE_UNSENT_MIB: '300' });
    assert.deepEqual([bodyBytes, unsentBytes], [900 * 1024 ** 2, 300 * 1024 ** 2]);
  });
});
