import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { fileURLToPath } from 'node:url';
import { openTracer } from '../../../../shared/tracing/open-tracer.ts';
import { inTrace, readTraceContext, traceHeaders } from '../../../../shared/tracing/trace-context.ts';

const root = fileURLToPath(new URL('../../../../', import.meta.url));
const parent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';

describe('trace contexts', () => {
  it('readTraceContext accepts well-formed headers only, and leaves out a state that is too long or has control characters', () => {
    assert.deepEqual(readTraceContext({ traceparent: parent, tracestate: 'a=1' }), { parent, state: 'a=1' });
    assert.deepEqual(readTraceContext({ traceparent: parent }), { parent });
    for (const state of ['x'.repeat(513), 'a=\r\nx-injected: 1', 'a=\u00e9', '']) {
      assert.deepEqual(readTraceContext({ traceparent: parent, tracestate: state }), { parent }, state);
    }
    const wrong = [`${parent}0`, `${parent}\r\nx: 1`, parent.toUpperCase(), parent.replace('00-', 'ff-'), ''];
    const zero = [
      parent.replace('0af7651916cd43dd8448eb211c80319c', '0'.repeat(32)),
      parent.replace('b7ad6b7169203331', '0'.repeat(16)),
    ];
    for (const traceparent of [...wrong, ...zero]) {
      assert.equal(readTraceContext({ traceparent }), undefined, traceparent);
    }
  });

  it('traceHeaders has the headers of the span that the work runs in, and none outside', async () => {
    assert.equal(traceHeaders(), undefined);
    const inside = await inTrace({ parent, state: 'a=1' }, async () => {
      await Promise.resolve();
      return traceHeaders();
    });
    assert.deepEqual(inside, ['traceparent', parent, 'tracestate', 'a=1']);
    assert.equal(traceHeaders(), undefined);
  });

  it('openTracer without a collector loads nothing, and only one module, which it imports when needed, loads the libraries', async () => {
    assert.equal(await openTracer(undefined, 'api', { warn: () => assert.fail('nothing to warn of') }), undefined);
    const files = ['api', 'workers', 'shared'].flatMap((folder) =>
      readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
        .filter((file) => file.endsWith('.ts'))
        .map((file) => join(folder, file)),
    );
    const naming = (text: RegExp): string[] =>
      files.filter((file) => text.test(readFileSync(join(root, file), 'utf8')));
    assert.deepEqual(naming(/from '@opentelemetry\//), ['shared/tracing/otlp-tracer.ts']);
    assert.deepEqual(naming(/from '[^']*otlp-tracer\.ts'/), []);
    assert.deepEqual(naming(/await import\('\.\/otlp-tracer\.ts'\)/), ['shared/tracing/open-tracer.ts']);
  });
});
