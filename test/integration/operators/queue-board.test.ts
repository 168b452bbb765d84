import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { held } from '../../support/chat-requests.ts';
import { signIn } from '../../support/console-session.ts';
import { eventually } from '../../support/eventually.ts';
import { TestGateway } from '../../support/gateway.ts';

const words = 'the words of a prompt that nobody may see';
const admin = { SLUICE_ADMIN_EMAIL: 'operator@example.com', SLUICE_ADMIN_PASSWORD: 'an operator password' };

interface Board {
  readonly queues: readonly {
    readonly name: string;
    readonly readOnlyMode: boolean;
    readonly counts: Readonly<Record<string, number>>;
    readonly jobs: readonly { readonly id: string; readonly name: string; readonly data: unknown }[];
  }[];
}

describe('queue board of the console', () => {
  let gateway: TestGateway;
  let cookie: string;
  let jobId: string;
  before(async () => {
    gateway = await TestGateway.start({ workers: 0, settings: admin });
    ({ cookie } = await signIn(gateway, admin.SLUICE_ADMIN_EMAIL, admin.SLUICE_ADMIN_PASSWORD));
    const later = { method: 'POST', headers: { prefer: 'respond-async' }, body: JSON.stringify(held(words)) };
    const response = await gateway.fetch('/v1/chat/completions', later);
    assert.equal(response.status, 202);
    ({ id: jobId } = (await response.json()) as { id: string });
  });
  after(() => gateway?.stop());

  const board = (path: string, method = 'GET'): Promise<Response> =>
    fetch(`${gateway.url}/console/queues${path}`, { method, headers: { cookie, origin: gateway.url } });

  it('GET /console/queues is a page with its own script files only', async () => {
    for (const path of ['', '/', '/queue/chat']) {
      const response = await board(path);
      assert.equal(response.status, 200, path);
      assert.match(response.headers.get('content-type') ?? '', /^text\/html/);
      const page = await response.text();
      assert.ok(page.includes('<base href="/console/queues/"'), path);
      const policy = response.headers.get('content-security-policy') ?? '';
      assert.match(policy, /script-src 'self'/);
      const scripts = [...page.matchAll(/src="(static\/[^"]+\.js)"/g)].map(([, file]) => file);
      assert.ok(scripts.length > 0);
      for (const file of scripts) {
        const script = await board(`/${file}`);
        assert.equal(script.status, 200, file);
        assert.match(script.headers.get('content-type') ?? '', /javascript/);
        await script.arrayBuffer();
      }
    }
  });

  it('GET /console/queues/api/queues shows the metadata of a job, and nothing of its prompt', async () => {
    const { queues } = await eventually(async () => {
      const response = await board('/api/queues?activeQueue=chat&jobsPerPage=100000');
      assert.equal(response.status, 200);
      const text = await response.text();
      assert.ok(!text.includes(words), 'the prompt is shown');
      const shown = JSON.parse(text) as Board;
      assert.equal(shown.queues.find(({ name }) => name === 'chat')?.jobs.length, 1);
      return shown;
    });
    const names = queues.map(({ name }) => name).sort();
    assert.deepEqual(names, ['chat', 'embedding', 'image', 'speech', 'transcription', 'video']);
    assert.ok(queues.every(({ readOnlyMode }) => readOnlyMode));
    const [job] = queues.find(({ name }) => name === 'chat')?.jobs ?? [];
    assert.equal(job?.name, 'sandbox-chat');
    assert.deepEqual(Object.keys(job?.data as object).sort(), ['account', 'endpoint', 'id', 'key', 'model']);
    const one = await board(`/api/queues/chat/${job?.id}`);
    assert.equal(one.status, 200);
    assert.ok(!(await one.text()).includes(words));
  });

  it('the queue board is read-only: every change returns 404 or 405', async () => {
    for (const path of [
      '/api/queues/pause',
      '/api/queues/chat/pause',
      '/api/queues/chat/empty',
      '/api/queues/chat/obliterate',
      `/api/queues/chat/${jobId}/clean`,
      `/api/queues/chat/${jobId}/promote`,
      `/api/queues/chat/${jobId}/retry`,
    ]) {
      for (const method of ['PUT', 'POST', 'PATCH', 'DELETE']) {
        const { status } = await board(path, method);
        assert.ok(status === 404 || status === 405, `${method} ${path}: ${status}`);
      }
    }
    await gateway.startWorker();
    await eventually(async () => {
      const job = (await (await gateway.fetch(`/v1/jobs/${jobId}`)).json()) as { status: string };
      assert.equal(job.status, 'completed');
    });
  });
});
