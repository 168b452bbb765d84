import { request as requestOfHttp } from 'node:http';
import { connect as connectPlain, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import type { buildConnector } from 'undici';
import { isProxied, type ProxySettings } from '../../shared/config/proxy-settings.ts';

/** How long a proxy may take for a connection. */
const connectMs = 10_000;

/** Opens tunnels through the proxy, in which `connect` talks to the vendor; undefined for a vendor that is called directly. */
export type ProxyConnector = (
  vendor: URL,
  connect: buildConnector.connector,
  onSocket: (socket: Socket) => void,
) => buildConnector.connector | undefined;

/** Connects to vendors through a proxy, by its CONNECT method. */
export function proxyConnector(settings: ProxySettings): ProxyConnector {
  const proxy = new URL(settings.url);
  const login = loginOf(proxy);
  return (vendor, connect, onSocket) => {
    if (!isProxied(vendor, settings)) return undefined;
    return (target, callback) => {
      const socket = connectTo(proxy);
      // At once, so that whoever waits for the connection can give up.
      onSocket(socket);
      const authority = `${target.hostname}:${target.port || '443'}`;
      const asked = requestOfHttp({
        createConnection: () => socket,
        method: 'CONNECT',
        path: authority,
        headers: { host: authority, ...(login !== undefined && { 'proxy-authorization': login }) },
      });
      const timer = setTimeout(() => asked.destroy(new Error('the proxy was silent')), connectMs);
      const fail = (error: Error): void => {
        clearTimeout(timer);
        socket.destroy();
        callback(error, null);
      };
      asked.once('error', fail);
      asked.once('connect', ({ statusCode = 0 }, tunnel: Socket) => {
        if (statusCode < 200 || statusCode > 299) return fail(new Error(`the proxy answered ${statusCode}`));
        clearTimeout(timer);
        connect({ ...target, httpSocket: tunnel }, callback);
      });
      asked.end();
    };
  };
}

function connectTo({ protocol, hostname, port }: URL): Socket {
  const host = hostname.replace(/^\[|\]$/g, '');
  if (protocol === 'http:') return connectPlain({ host, port: Number(port || 80) });
  return connectTls({ host, port: Number(port || 443), servername: host });
}

function loginOf({ username, password }: URL): string | undefined {
  if (username === '') return undefined;
  const login = `${decodeURIComponent(username)}:${decodeURIComponent(password)}`;
  return `Basic ${Buffer.from(login).toString('base64')}`;
}
