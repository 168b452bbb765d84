import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { eventually } from '../../support/eventually.ts';
import { TestGateway } from '../../support/gateway.ts';
import { createVideo } from '../../support/sandbox-videos.ts';

test('a video that its vendor is making is completed after a reload that turns the vendor off', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'sluice-test-reloaded-'));
  const file = join(folder, 'sluice.yaml');
  // biome-ignore lint/suspicious/noTemplateCurlyInString: the configuration's own notation.
  const base_url = '${SANDBOX_BASE_URL}';
  const film = {
    capability: 'video',
    routes: [{ vendor: 'filming', model: 'sandbox-video' }],
    video: { sizes: ['1280x720'], seconds: [4] },
  };
  await writeFile(file, JSON.stringify({ vendors: { filming: { base_url } }, models: { film } }));
  const gateway = await TestGateway.start({ settings: { SLUICE_CONFIG: file } });
  try {
    const client = gateway.client();
    const { id } = await createVideo(client, { model: 'film' as never });
    await eventually(async () => assert.equal((await client.videos.retrieve(id)).status, 'in_progress'));
    await writeFile(file, JSON.stringify({ vendors: { filming: { base_url, enabled: false } }, models: { film } }));
    const processes = [...gateway.apis, ...gateway.workers];
    for (const { child } of processes) child.kill('SIGHUP');
    for (const { output } of processes) await eventually(() => assert.match(output(), /configuration reloaded/));
    await eventually(async () => assert.equal((await client.videos.retrieve(id)).status, 'completed'), 20_000);
    await assert.rejects(createVideo(client, { model: 'film' as never }), { status: 404 });
  } finally {
    await gateway.stop();
    await rm(folder, { recursive: true, force: true });
  }
});
