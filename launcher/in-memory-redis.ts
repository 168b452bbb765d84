/**
 * A process that is an in-memory Redis, for trying Sluice where no redis-server is installed. Forked by embedded-redis.ts,
 * which sends the password; it ends with SIGTERM or when its parent is gone.
 */
import { createServer } from 'node:net';
import {
  attachSession,
  createRedisCommandExecutor,
  RedisServerState,
  SocketConnectionTransport,
} from 'js-redis-server/core';
import { keepFilesPrivate } from '../shared/runtime/private-files.ts';

/** From the parent, once: the start parameters. */
export interface StartMessage {
  readonly type: 'start';
  readonly password: string;
}

/** To the parent, once: the port it listens on. */
export interface ListeningMessage {
  readonly type: 'listening';
  readonly port: number;
}

function start(password: string): void {
  const compatibility = 'redis-7.0';
  const state = new RedisServerState({ requirepass: password, compatibility });
  const executor = createRedisCommandExecutor({ compatibility });
  // Not the package's own server, which listens on every interface.
  const server = createServer({ keepAlive: true, noDelay: true }, (socket) => {
    attachSession(new SocketConnectionTransport(socket), { state, executor });
  });
  server.listen(0, '127.0.0.1', () => {
    const address = server.address();
    if (address === null || typeof address === 'string') throw new Error('no port');
    process.send?.({ type: 'listening', port: address.port } satisfies ListeningMessage);
  });
}

keepFilesPrivate();
process.once('message', (message: StartMessage) => start(message.password));
process.once('disconnect', () => process.exit(0));
