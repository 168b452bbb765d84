import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, describe, test } from 'node:test';
import { freePort } from '../../support/free-port.ts';

const dockerfile = readFileSync(new URL('../../../Dockerfile', import.meta.url), 'utf8');
const [, , ...args] = JSON.parse(
  `["", ${/^HEALTHCHECK [\s\S]*?CMD \[(.*)\]$/m.exec(dockerfile)?.[1] ?? ''}]`,
) as string[];

describe('the health check of the image', () => {
  const servers: Server[] = [];
  after(() => {
    for (const server of servers) server.close();
  });

  /** A port that answers `/healthz` with this status. */
  async function answering(status: number): Promise<string> {
    const server = createServer((request, response) => {
      response.writeHead(request.url === '/healthz' ? status : 500).end();
    });
    servers.push(server.listen(0, '127.0.0.1'));
    await once(server, 'listening');
    return String((server.address() as AddressInfo).port);
  }

  async function exitCode(env: Record<string, string>): Promise<number> {
    const [code] = await once(spawn(process.execPath, args, { env }), 'exit');
    return code;
  }

  test('the health check of the image asks an api, a worker and a ledger process where each of them answers', async () => {
    const [healthy, metricsAlone, nobody] = [await answering(200), await answering(404), String(await freePort())];
    assert.equal(await exitCode({ PORT: healthy, METRICS_PORT: metricsAlone }), 0, 'an api');
    assert.equal(await exitCode({ PORT: nobody, WORKER_PORT: healthy }), 0, 'a worker');
    assert.equal(await exitCode({ PORT: nobody, METRICS_PORT: healthy }), 0, 'a ledger process');
    assert.equal(await exitCode({ PORT: nobody, METRICS_PORT: metricsAlone }), 1, 'an api that does not answer');
    assert.equal(await exitCode({ PORT: await answering(503) }), 1, 'an api that is not well');
  });

  test('a worker has a port to be asked at in the image, as an api does, without any setting', () => {
    const [, port] = / WORKER_PORT=(\d+)\b/.exec(/^ENV NODE_ENV=.*$/m.exec(dockerfile)?.[0] ?? '') ?? [];
    assert.ok(Number(port) > 1023, 'a container of a worker alone would be unhealthy for ever');
    assert.match(
      readFileSync(new URL('../../../docs/configuration.md', import.meta.url), 'utf8'),
      new RegExp(`\\| \`WORKER_PORT\` \\| none \\(image: ${port}\\)`),
    );
  });
});
