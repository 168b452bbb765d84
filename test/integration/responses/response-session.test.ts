import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { after, before, describe, it, mock } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { WebSocket, WebSocketServer } from 'ws';
import {
  parseSocketMessage,
  type SocketEnvelope,
} from '../../../api/endpoints/responses/socket/parse-socket-message.ts';
import {
  ResponseSession,
  type SessionLimits,
  sessionLimits,
} from '../../../api/endpoints/responses/socket/response-session.ts';
import { SocketConnection } from '../../../api/replies/socket-connection.ts';
import { ApiError } from '../../../shared/errors.ts';
import { withTimeout } from '../../../shared/runtime/with-timeout.ts';
import { eventually } from '../../support/eventually.ts';

interface Pair {
  readonly client: WebSocket;
  readonly socket: Socket;
  readonly connection: SocketConnection;
  readonly session: ResponseSession;
  /** What the client got. */
  readonly messages: unknown[];
  /** The models of the turns begun, in order, and how to end each. */
  readonly begun: string[];
  readonly finish: (model: string) => void;
  /** The turns that were told that their client is gone. */
  readonly left: string[];
  /** What nobody expected to fail. */
  readonly faults: unknown[];
}

/** A model whose turn fails as no turn should, and one for which there is not even a turn. */
const failing = 'failing';
const unopened = 'unopened';

describe('ResponseSession', () => {
  let server: Server;
  const clients: WebSocket[] = [];
  const sockets = new WebSocketServer({ noServer: true, maxPayload: 1e9 });
  before(async () => {
    server = createServer().listen(0, '127.0.0.1');
    await once(server, 'listening');
  });
  after(() => {
    for (const client of clients) client.terminate();
    server.close();
  });

  /** A session whose turns are begun and ended by the test. */
  async function connect(limits: Partial<SessionLimits> = {}, options: { autoPong?: boolean } = {}): Promise<Pair> {
    const begun: string[] = [];
    const left: string[] = [];
    const faults: unknown[] = [];
    const ends = new Map<string, () => void>();
    const accepted = new Promise<Pick<Pair, 'connection' | 'session' | 'socket'>>((resolve) => {
      server.once('upgrade', (request, stream, head) =>
        sockets.handleUpgrade(request, stream, head, (webSocket) => {
          const socket = stream as Socket;
          const connection = new SocketConnection(webSocket, socket);
          const work = {
            parse: (message: Buffer) => {
              if (message.includes('"late"')) return Promise.reject(new TypeError('late'));
              if (message.includes('"broken"')) throw new TypeError('broken');
              return parseSocketMessage(message);
            },
            openTurn: ({ streamId, refusal }: SocketEnvelope) => {
              if (streamId === unopened) throw new TypeError(unopened);
              let name = '';
              return {
                responseId: `resp_${begun.length}`,
                run: async ({ model }: { model: string }) => {
                  name = model || String(refusal?.code);
                  begun.push(name);
                  if (model === failing) throw new TypeError(failing);
                  if (refusal !== undefined) return;
                  await new Promise<void>((end) => ends.set(model, end));
                },
                cancel: () => ends.get(name)?.(),
                leave: () => {
                  left.push(name);
                },
              };
            },
            onFault: (error: unknown) => {
              faults.push(error);
            },
          };
          const session = new ResponseSession(connection, work, { ...sessionLimits, idleMs: 600_000, ...limits });
          webSocket.on('message', (data, isBinary) => session.take(data as Buffer, isBinary));
          resolve({ connection, session, socket });
        }),
      );
    });
    const client = new WebSocket(`ws://127.0.0.1:${(server.address() as AddressInfo).port}`, options);
    clients.push(client);
    client.on('error', () => undefined);
    const messages: unknown[] = [];
    client.on('message', (data) => messages.push(JSON.parse(String(data))));
    await once(client, 'open');
    return { ...(await accepted), client, messages, begun, left, faults, finish: (model) => ends.get(model)?.() };
  }

  function create(client: WebSocket, model: string, more: object = {}): void {
    client.send(JSON.stringify({ type: 'response.create', model, input: 'Hi', ...more }));
  }

  /** Whether what the client has sent so far is read, or not within a while. */
  async function isRead(client: WebSocket): Promise<boolean> {
    client.ping();
    return (await withTimeout(once(client, 'pong'), 300)) !== undefined;
  }

  it('ResponseSession disconnects a client that has answered no ping for 90 seconds', async (t) => {
    // Only these: the sockets' own timers go on. First of all tests, because it must not meet timers of others.
    mock.timers.enable({ apis: ['setInterval', 'Date'] });
    t.after(() => mock.timers.reset());
    const { client, begun, left } = await connect({}, { autoPong: false });
    create(client, 'a');
    await eventually(() => assert.deepEqual(begun, ['a']));
    const closed = once(client, 'close');
    mock.timers.tick(90_000);
    assert.equal(client.readyState, WebSocket.OPEN);
    mock.timers.tick(15_000);
    assert.equal((await closed)[0], 1006);
    assert.deepEqual(left, ['a']);
  });

  it('ResponseSession answers a message whose parsing throws, at once or later, with an error, and continues', async () => {
    const { client, begun, faults, finish } = await connect();
    create(client, 'a', { user: 'broken' });
    create(client, 'b', { user: 'late' });
    create(client, 'c');
    await eventually(() => assert.deepEqual(begun, ['server_error', 'server_error', 'c']));
    assert.deepEqual(faults.map(String), ['TypeError: broken', 'TypeError: late']);
    finish('c');
    client.terminate();
  });

  it('ResponseSession continues after a request that throws unexpectedly', async () => {
    const { client, begun, faults, finish } = await connect();
    create(client, failing);
    create(client, 'a');
    await eventually(() => assert.deepEqual(begun, [failing, 'a']));
    assert.deepEqual(faults.map(String), ['TypeError: failing']);
    finish('a');
    client.terminate();
  });

  it('ResponseSession closes with 1011 when a request cannot even be opened', async () => {
    const { client, begun, faults } = await connect();
    const closed = once(client, 'close');
    create(client, 'a', { stream_id: unopened });
    assert.equal((await closed)[0], 1011);
    assert.deepEqual([begun, faults.map(String)], [[], ['TypeError: unopened']]);
  });

  it('ResponseSession ends after its lifetime: running requests finish, waiting ones do not start, then it closes with 1001', async () => {
    const { client, messages, begun, finish } = await connect({ lifetimeMs: 300 });
    create(client, 'running');
    create(client, 'waiting');
    await delay(600);
    create(client, 'late');
    await isRead(client);
    assert.deepEqual([begun, messages], [['running'], []]);
    finish('running');
    const [code] = await once(client, 'close');
    assert.equal(code, 1001);
    assert.deepEqual(messages, [
      {
        type: 'error',
        status: 400,
        error: {
          type: 'invalid_request_error',
          code: 'websocket_connection_limit_reached',
          message:
            'Responses websocket connection limit reached (0 minutes). Create a new websocket connection to continue.',
          param: null,
        },
      },
    ]);
    assert.deepEqual(begun, ['running']);
  });

  it('ResponseSession tells idle lanes at once that it ends, while those of others run on', async () => {
    const { client, messages, begun, finish } = await connect({ lifetimeMs: 300, running: 1 });
    create(client, 'running', { stream_id: 'a' });
    create(client, 'waiting', { stream_id: 'b' });
    const told = (): unknown[] =>
      messages.map((message) => {
        const { stream_id: lane, error } = message as { stream_id?: string; error: { code: string } };
        return [lane, error.code];
      });
    const limit = 'websocket_connection_limit_reached';
    await eventually(() => assert.deepEqual(told(), [['b', limit]]));
    create(client, 'newcomer', { stream_id: 'c' });
    create(client, 'in its turn', { stream_id: 'a' });
    await eventually(() =>
      assert.deepEqual(told(), [
        ['b', limit],
        ['c', limit],
      ]),
    );
    finish('running');
    assert.deepEqual((await once(client, 'close'))[0], 1001);
    assert.deepEqual([told().at(-1), messages.length, begun], [[undefined, limit], 3, ['running']]);
  });

  it('ResponseSession has a lifetime of an hour, which also ends an idle connection', async () => {
    assert.equal(sessionLimits.lifetimeMs, 3_600_000);
    const { client, messages } = await connect({ lifetimeMs: 100 });
    assert.equal((await once(client, 'close'))[0], 1001);
    assert.equal(messages.length, 1);
  });

  it('ResponseSession closes an idle connection, counted from the last message or the end of the last request', async () => {
    const { client, messages, finish } = await connect({ idleMs: 800 });
    for (let count = 0; count < 12; count++) {
      client.send('{"type":"response.cancel"}');
      await delay(100);
    }
    create(client, 'a');
    await delay(1200);
    assert.equal(client.readyState, WebSocket.OPEN);
    const before = performance.now();
    finish('a');
    assert.equal((await once(client, 'close'))[0], 1000);
    assert.ok(performance.now() - before > 780, 'it was open for its time after the turn');
    assert.equal(messages.length, 12);
  });

  it('ResponseSession runs sixteen requests, lets sixteen messages wait, and reads no more', async () => {
    const { client, begun, finish } = await connect();
    for (let lane = 0; lane < 31; lane++) create(client, `m${lane}`, { stream_id: `l${lane}` });
    await isRead(client);
    assert.equal(begun.length, 16);
    create(client, 'm31', { stream_id: 'l31' });
    // It may have come in one piece with the message.
    await isRead(client);
    assert.equal(await isRead(client), false);
    create(client, 'm32', { stream_id: 'l0' });
    finish('m5');
    await eventually(() => assert.equal(begun.length, 17));
    assert.equal(begun.at(-1), 'm16');
    for (const model of [...begun]) finish(model);
    await eventually(() => assert.equal(begun.length, 33));
    assert.equal(begun.at(-1), 'm32');
  });

  it('ResponseSession runs refused messages that wait behind a request in different passes of the event loop', async () => {
    const { client, begun, finish } = await connect();
    create(client, 'a');
    for (let count = 0; count < 10; count++) client.send('{"type":"unknown"}');
    assert.equal(await isRead(client), true);
    assert.deepEqual(begun, ['a']);
    finish('a');
    await new Promise((resolve) => setImmediate(resolve));
    assert.ok(begun.length <= 3, `${begun.length} in one pass`);
    await eventually(() => assert.equal(begun.length, 11));
  });

  it('ResponseSession lets fewer long messages wait', async () => {
    const { client, session, begun, finish } = await connect({ waitingBytes: 1000 });
    let taken = 0;
    const { take } = session;
    session.take = (message, isBinary) => {
      taken++;
      take.call(session, message, isBinary);
    };
    create(client, 'running');
    await isRead(client);
    create(client, 'long', { input: 'x'.repeat(200_000) });
    await eventually(() => assert.equal(taken, 2));
    create(client, 'later', { input: 'x'.repeat(200_000) });
    assert.equal(await isRead(client), false);
    assert.deepEqual([taken, begun], [2, ['running']]);
    finish('running');
    await eventually(() => assert.deepEqual([taken, begun], [3, ['running', 'long']]));
    finish('long');
    await eventually(() => assert.equal(begun.at(-1), 'later'));
  });

  it('ResponseSession starts and reads nothing for a client that reads nothing, until it reads again', async () => {
    const { client, socket, connection, begun } = await connect();
    client.pause();
    const text = JSON.stringify({ text: 'x'.repeat(100_000) });
    for (;;) if (!connection.send([text]) && (await withTimeout(once(socket, 'drain'), 200)) === undefined) break;
    assert.equal(connection.isFull, true);
    create(client, 'a');
    await delay(300);
    assert.deepEqual(begun, []);
    client.resume();
    await eventually(() => assert.deepEqual(begun, ['a']));
  });

  it('ResponseSession notifies its running requests of a disconnect, and starts none of the waiting ones', async () => {
    const { client, begun, left, finish } = await connect();
    create(client, 'a');
    create(client, 'b', { stream_id: 'lane' });
    create(client, 'c');
    await isRead(client);
    client.terminate();
    await eventually(() => assert.deepEqual(left, ['a', 'b']));
    finish('a');
    await delay(100);
    assert.deepEqual(begun, ['a', 'b']);
  });

  it('ResponseSession ends at once on request when nothing runs', async () => {
    const { client, session, messages } = await connect();
    session.end(new ApiError('service_unavailable', 'Closing.'));
    assert.equal((await once(client, 'close'))[0], 1001);
    assert.equal((messages[0] as { error: { code: string } }).error.code, 'service_unavailable');
  });
});
