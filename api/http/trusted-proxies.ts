import type { IncomingMessage } from 'node:http';
import { BlockList, isIP } from 'node:net';
import type { TrustedProxies } from '../../shared/config/ingress-settings.ts';
import { isLoopback } from '../../shared/config/loopback.ts';
import { networkOf } from './network-of.ts';

/** A request's origin, according to trusted proxies. */
export interface Ingress {
  /** Host and port as the caller wrote them, in lower case: `a.example`, `a.example:8443`. */
  readonly host: string;
  readonly protocol: 'http' | 'https';
}

/** Reads `X-Forwarded-*` headers, as far as `TRUST_PROXY` trusts their senders: anybody else could forge them. */
export class ForwardedHeaders {
  readonly #hops: number | undefined;
  readonly #networks: BlockList;

  /** @param trusted the parsed `TRUST_PROXY` */
  constructor(trusted: TrustedProxies) {
    this.#hops = typeof trusted === 'number' ? trusted : undefined;
    this.#networks = blockListOf(typeof trusted === 'number' ? [] : trusted);
  }

  /** The caller's address: the nearest one that is not of a trusted proxy. `''` if the connection is closed. */
  clientAddress({ socket, headers }: IncomingMessage): string {
    let client = plain(socket.remoteAddress ?? '');
    const before = String(headers['x-forwarded-for'] ?? '').split(',');
    // Each proxy appends the address of its caller.
    for (let hops = 0; before.length > 0 && this.#isTrusted(client, hops); hops++) {
      const next = readAddress(before.pop() ?? '');
      if (next === undefined) break;
      client = next;
    }
    return client;
  }

  /** The calling network. Undefined if many may share it: this machine's own address, a proxy's. */
  callerNetwork(request: IncomingMessage): string | undefined {
    const address = this.clientAddress(request);
    const isPeer = address === plain(request.socket.remoteAddress ?? '');
    const isUnknown = address === '' || isLoopback(address) || (isPeer && this.isShared(address));
    return isUnknown ? undefined : networkOf(address);
  }

  /** Whether many callers may share a connection's address: this machine's own, or a trusted proxy's. */
  isShared(address: string): boolean {
    return isLoopback(address) || this.#isTrusted(plain(address), 0);
  }

  /** The host and protocol of the request. */
  ingress({ socket, headers }: IncomingMessage): Ingress {
    const isTrusted = this.#isTrusted(plain(socket.remoteAddress ?? ''), 0);
    const host = (isTrusted ? first(headers['x-forwarded-host']) : undefined) ?? headers.host ?? '';
    const protocol = isTrusted ? first(headers['x-forwarded-proto'])?.toLowerCase() : undefined;
    return { host: host.toLowerCase(), protocol: protocol === 'https' ? 'https' : 'http' };
  }

  #isTrusted(address: string, hops: number): boolean {
    if (this.#hops !== undefined) return hops < this.#hops;
    const version = isIP(address);
    return version !== 0 && this.#networks.check(address, version === 4 ? 'ipv4' : 'ipv6');
  }
}

function blockListOf(networks: readonly string[]): BlockList {
  const list = new BlockList();
  for (const network of networks) {
    const [ip = '', prefix] = network.split('/');
    const version = isIP(ip);
    list.addSubnet(ip, Number(prefix ?? (version === 4 ? 32 : 128)), version === 4 ? 'ipv4' : 'ipv6');
  }
  return list;
}

/** The first of several values, which the outermost proxy set. */
function first(header: string | string[] | undefined): string | undefined {
  const value = String(header ?? '')
    .split(',', 1)[0]
    ?.trim();
  return value === '' ? undefined : value;
}

/** Parses `203.0.113.7`, `203.0.113.7:5081`, `[2001:db8::1]:5081`; undefined if it is not an address (`unknown`). */
function readAddress(text: string): string | undefined {
  const trimmed = text.trim();
  const bare = /^\[([^\]]+)\](?::\d+)?$/.exec(trimmed)?.[1] ?? /^([\d.]+):\d+$/.exec(trimmed)?.[1] ?? trimmed;
  return isIP(bare) === 0 ? undefined : plain(bare);
}

/** Unwraps an IPv4 address of an IPv6 socket. */
function plain(address: string): string {
  return /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address)?.[1] ?? address;
}
