import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { after, afterEach, before, beforeEach, describe, it, mock } from 'node:test';
import { WebSocket, WebSocketServer } from 'ws';
import { SocketReply } from '../../../api/replies/socket-reply.ts';
import { expired } from '../../../api/replies/unreadable-answer.ts';
import { withTimeout } from '../../../shared/runtime/with-timeout.ts';
import { errorDetails } from '../../support/error-answers.ts';

interface Pair {
  readonly answer: SocketReply;
  readonly client: WebSocket;
  readonly socket: Socket;
  readonly drains: () => number;
}

describe('SocketReply', () => {
  let server: Server;
  // A close that comes too early cuts the client off soon.
  const impatient = { noServer: true, closeTimeout: 200 };
  const sockets = new WebSocketServer(impatient);
  before(async () => {
    server = createServer().listen(0, '127.0.0.1');
    await once(server, 'listening');
  });
  after(() => server.close());
  // Only these: the sockets' own timers go on.
  beforeEach(() => mock.timers.enable({ apis: ['setInterval', 'Date'] }));
  afterEach(() => mock.timers.reset());

  /** A connection with an answer at its far end; `text` is the data of each delta frame. */
  async function connect(options: { autoPong?: boolean } = {}): Promise<Pair> {
    let drains = 0;
    const answer = new SocketReply({
      events: (frame) => [`data: ${frame.text}`],
      view: {},
      resumeAfter: undefined,
    });
    answer.onDrain = () => {
      drains++;
    };
    const opened = new Promise<Socket>((resolve) => {
      server.once('upgrade', (request, stream, head) =>
        sockets.handleUpgrade(request, stream, head, (webSocket) => {
          answer.open(webSocket, stream as Socket);
          resolve(stream as Socket);
        }),
      );
    });
    const client = new WebSocket(`ws://127.0.0.1:${(server.address() as AddressInfo).port}`, options);
    client.on('error', () => undefined);
    await once(client, 'open');
    return { answer, client, socket: await opened, drains: () => drains };
  }

  it('SocketReply pings every 15 seconds and keeps a client that answers', async () => {
    const { answer, client } = await connect();
    for (let round = 0; round < 20; round++) {
      const pinged = once(client, 'ping');
      mock.timers.tick(15_000);
      await pinged;
      // Its pong is there once a later message has gone the same way and back.
      client.ping();
      await once(client, 'pong');
    }
    assert.equal(client.readyState, WebSocket.OPEN);
    client.close();
    await answer.closed;
  });

  it('SocketReply disconnects a client that has answered no ping for 90 seconds', async () => {
    const { answer, client } = await connect({ autoPong: false });
    const closed = once(client, 'close');
    mock.timers.tick(90_000);
    assert.equal(client.readyState, WebSocket.OPEN);
    mock.timers.tick(15_000);
    const [code] = await closed;
    assert.equal(code, 1006);
    await answer.closed;
  });

  it('SocketReply keeps a client that answers when the clock of its host is put forward by an hour', async (t) => {
    const { answer, client } = await connect();
    const now = Date.now;
    t.mock.method(Date, 'now', () => now() + 3_600_000);
    const pinged = once(client, 'ping');
    mock.timers.tick(15_000);
    assert.notEqual(await withTimeout(pinged, 1000), undefined);
    assert.equal(client.readyState, WebSocket.OPEN);
    client.close();
    await answer.closed;
  });

  it('SocketReply reports backpressure while its client reads nothing, and does not take it for dead', async () => {
    const { answer, client, socket, drains } = await connect();
    client.pause();
    const text = JSON.stringify({ text: 'x'.repeat(10_000) });
    let seq = 0;
    const fill = async (): Promise<void> => {
      for (;;) {
        answer.frame({ seq: ++seq, type: 'delta', text });
        if (!answer.flush() && (await withTimeout(once(socket, 'drain'), 100)) === undefined) return;
      }
    };
    await fill();
    assert.ok(socket.writableLength < 1024 * 1024, `${socket.writableLength} bytes are held`);
    const held = seq;
    let received = 0;
    client.on('message', () => {
      received++;
    });
    const before = drains();
    client.resume();
    while (received < held) await once(client, 'message');
    while (drains() === before) await once(socket, 'drain');
    client.pause();
    await fill();
    // How long that may last is the server's to say, of all its connections.
    mock.timers.tick(300_000);
    assert.equal(socket.destroyed, false);
    client.terminate();
    await answer.closed;
  });

  it('SocketReply closes only after its client has read everything, however long that takes', async () => {
    const { answer, client, socket } = await connect();
    client.pause();
    answer.frame({ seq: 1, type: 'delta', text: JSON.stringify({ text: 'x'.repeat(30_000_000) }) });
    answer.frame({ seq: 2, type: 'end', text: '{}' });
    assert.equal(answer.flush(), false);
    await new Promise((resolve) => setTimeout(resolve, 500));
    assert.ok(socket.writableLength > 0, 'not all of it is on its way');
    const sizes: number[] = [];
    client.on('message', (data) => sizes.push(String(data).length));
    client.resume();
    const [code] = await once(client, 'close');
    assert.equal(code, 1000);
    assert.equal(sizes.length, 2);
    assert.ok((sizes[0] ?? 0) > 30_000_000);
    await answer.closed;
  });

  it('SocketReply buffers frames before the connection opens, and sends them then', async () => {
    const answer = new SocketReply({
      events: (frame) => [`event: first\ndata: ${frame.text}`, 'data: [DONE]'],
      view: {},
      resumeAfter: { seq: 1, event: 0 },
    });
    answer.frame({ seq: 1, type: 'end', text: '{"a":1}' });
    assert.equal(answer.flush(), false);
    await answer.started;
    server.once('upgrade', (request, stream, head) =>
      sockets.handleUpgrade(request, stream, head, (webSocket) => answer.open(webSocket, stream as Socket)),
    );
    const client = new WebSocket(`ws://127.0.0.1:${(server.address() as AddressInfo).port}`);
    const messages: string[] = [];
    client.on('message', (data) => messages.push(String(data)));
    const [code] = await once(client, 'close');
    assert.equal(code, 1000);
    assert.deepEqual(messages, ['{"id":null,"event":null,"data":"[DONE]"}']);
  });

  it('SocketReply begins no second time for a client that has a part of an answer of which only its error is stored', async () => {
    const answer = new SocketReply({
      events: () => ['data: {"type":"begun"}', 'data: {"type":"failed"}'],
      view: { showsErrors: true, errorEvent: (error) => `data: {"type":"error","code":"${error.code}"}` },
      resumeAfter: { seq: 3, event: 0 },
    });
    server.once('upgrade', (request, stream, head) =>
      sockets.handleUpgrade(request, stream, head, (webSocket) => answer.open(webSocket, stream as Socket)),
    );
    const client = new WebSocket(`ws://127.0.0.1:${(server.address() as AddressInfo).port}`);
    const messages: string[] = [];
    client.on('message', (data) => messages.push(String(data)));
    await once(client, 'open');
    answer.frame({ seq: 5, type: 'error', text: JSON.stringify(expired().toData()) });
    answer.flush();
    assert.equal((await once(client, 'close'))[0], 1000);
    assert.deepEqual(messages, ['{"id":"5.0","event":null,"data":{"type":"error","code":"resume_expired"}}']);
  });

  it('SocketReply ends a lost answer with its error and code 1011', async () => {
    const { answer, client } = await connect();
    const message = once(client, 'message');
    const closed = once(client, 'close');
    answer.frame({ seq: 1, type: 'delta', text: '{}' });
    answer.flush();
    await message;
    const last = once(client, 'message');
    answer.fail(expired());
    const { id, data } = JSON.parse(String((await last)[0]));
    assert.equal(id, null);
    assert.equal(errorDetails(data).code, 'resume_expired');
    assert.equal((await closed)[0], 1011);
    await answer.closed;
    // Nothing more is sent, whatever still comes.
    answer.frame({ seq: 2, type: 'delta', text: '{}' });
    answer.flush();
  });
});
