import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { Exemplars } from '../../../../shared/runtime/exemplars.ts';
import { metricMakers, ProcessRegistry, secondsBuckets } from '../../../../shared/runtime/metrics.ts';

const trace = '0af7651916cd43dd8448eb211c80319c';
const other = '11111111111111111111111111111111';

describe('exemplars', () => {
  test('an exemplar stands behind the bucket that its observation fell into, and in no other', async () => {
    const registry = new ProcessRegistry(true);
    registry.setDefaultLabels({ role: 'api' });
    const histogram = metricMakers(registry).histogram('waits_seconds', 'Waits.', ...(['endpoint', 'stream'] as const));
    histogram.observe({ endpoint: 'chat', stream: 'yes' }, 0.3, other);
    histogram.observe({ endpoint: 'chat', stream: 'yes' }, 0.4, trace);
    histogram.observe({ endpoint: 'chat', stream: 'no' }, 0.4);
    histogram.observe({ endpoint: 'images', stream: 'no' }, 1e6, trace);
    const page = registry.exemplars?.toOpenMetrics(await registry.metrics()) ?? '';
    const lines = page.split('\n').filter((line) => line.includes(' # '));
    assert.deepEqual(
      lines.map((line) => line.replace(/ [\d.]+$/, ' now')),
      [
        `waits_seconds_bucket{le="0.5",role="api",endpoint="chat",stream="yes"} 2 # {trace_id="${trace}"} 0.4 now`,
        `waits_seconds_bucket{le="+Inf",role="api",endpoint="images",stream="no"} 1 # {trace_id="${trace}"} 1000000 now`,
      ],
    );
  });

  test('a page of OpenMetrics names counters without the suffix of their samples, and has an end', () => {
    const text = [
      '# HELP a_total A.',
      '# TYPE a_total counter',
      'a_total{x="1"} 2',
      '',
      '# HELP b B.',
      '# TYPE b gauge',
      '',
    ];
    assert.equal(
      new Exemplars(secondsBuckets).toOpenMetrics([...text, 'b 1', ''].join('\n')),
      '# HELP a A.\n# TYPE a counter\na_total{x="1"} 2\n# HELP b B.\n# TYPE b gauge\nb 1\n# EOF\n',
    );
  });

  test('labels with quotes and line ends keep their exemplars', async () => {
    const registry = new ProcessRegistry(true);
    const histogram = metricMakers(registry).histogram('waits_seconds', 'Waits.', 'route');
    histogram.observe({ route: 'a "b"\\\nc' }, 0.001, trace);
    assert.match(registry.exemplars?.toOpenMetrics(await registry.metrics()) ?? '', /le="0.005".* # \{trace_id=/);
  });

  test('a process without a tracer keeps none', () => {
    const registry = new ProcessRegistry(false);
    metricMakers(registry).histogram('waits_seconds', 'Waits.', 'endpoint').observe({ endpoint: 'chat' }, 1, trace);
    assert.equal(registry.exemplars, undefined);
  });
});
