import type { Server } from 'node:http';
import { ConfigError } from '../config/config-error.ts';

/** Connections that may wait to be accepted: a burst beyond it waits seconds for its next try. Linux allows as many since 5.4. */
const backlog = 4096;

/** Errors that no other port mends. */
const hostErrors: ReadonlySet<string> = new Set(['ENOTFOUND', 'EAI_AGAIN', 'EADDRNOTAVAIL', 'EINVAL', 'EAFNOSUPPORT']);

/**
 * Listens.
 * @param setting the one that names the port
 * @throws ConfigError when the port is taken or may not be used.
 */
export async function listen(
  server: Server,
  port: number,
  { host }: { readonly host: string },
  setting = 'PORT',
): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) => {
      if (hostErrors.has(error.code ?? '')) {
        return reject(new ConfigError(`HOST ${host} is no address of this machine (${error.code}): set HOST to one.`));
      }
      const reason = error.code === 'EADDRINUSE' ? 'is in use' : `cannot be listened on (${error.code})`;
      reject(new ConfigError(`The port ${port} on ${host} ${reason}: set ${setting} to another one.`));
    });
    server.listen({ port, host, backlog }, resolve);
  });
}
