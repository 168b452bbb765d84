import type { IncomingMessage } from 'node:http';
import { BlockList, isIP } from 'node:net';
import type { TrustedProxies } from '../../shared/config/ingress-settings.ts';
import { isLoopback } from '../../shared/config/loopback.ts';
import { networkOf } from './network-of.ts';

/** What a request is taken for, after what trusted proxies say of it. */
export interface Ingress {
  /** Host and port as its caller wrote them, in lower case: `a.example`, `a.example:8443`. */
  readonly host: string;
  readonly protocol: 'http' | 'https';
}

/**
 * Reads `X-Forwarded-*` headers, as far as `TRUST_PROXY` says that those who wrote them are to be believed: everybody else
 * could write them, too, and be whoever they like.
 */
export class ForwardedHeaders {
  readonly #hops: number | undefined;
  readonly #networks: BlockList;

  /** @param trusted as `TRUST_PROXY` is read */
  constructor(trusted: TrustedProxies) {
    this.#hops = typeof trusted === 'number' ? trusted : undefined;
    this.#networks = blockListOf(typeof trusted === 'number' ? [] : trusted);
  }

  /**
   * The address of whoever called: the nearest one that is not a trusted proxy's. `''` where the connection is gone.
   */
  clientAddress({ socket, headers }: IncomingMessage): string {
    let client = plain(socket.remoteAddress ?? '');
    const before = String(headers['x-forwarded-for'] ?? '').split(',');
    // Each proxy adds the address it was called from at the end.
    for (let hops = 0; before.length > 0 && this.#isTrusted(client, hops); hops++) {
      const next = readAddress(before.pop() ?? '');
      if (next === undefined) break;
      client = next;
    }
    return client;
  }

  /** The network that called; undefined where many may call from it: this machine's own address, a proxy's. */
  callerNetwork(request: IncomingMessage): string | undefined {
    const address = this.clientAddress(request);
    const isPeer = address === plain(request.socket.remoteAddress ?? '');
    const isUnknown = address === '' || isLoopback(address) || (isPeer && this.isShared(address));
    return isUnknown ? undefined : networkOf(address);
  }

  /** Whether many may call over a connection from this address: this machine's own, or a trusted proxy's. */
  isShared(address: string): boolean {
    return isLoopback(address) || this.#isTrusted(plain(address), 0);
  }

  /** Under which host and protocol the request was made. */
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

/** The first of several values, which is what the outermost proxy was asked. */
function first(header: string | string[] | undefined): string | undefined {
  const value = String(header ?? '')
    .split(',', 1)[0]
    ?.trim();
  return value === '' ? undefined : value;
}

/** `203.0.113.7`, `203.0.113.7:5081`, `[2001:db8::1]:5081`; undefined for what is no address (`unknown`). */
function readAddress(text: string): string | undefined {
  const trimmed = text.trim();
  const bare = /^\[([^\]]+)\](?::\d+)?$/.exec(trimmed)?.[1] ?? /^([\d.]+):\d+$/.exec(trimmed)?.[1] ?? trimmed;
  return isIP(bare) === 0 ? undefined : plain(bare);
}

/** An IPv4 address that came over an IPv6 socket is the same address. */
function plain(address: string): string {
  return /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address)?.[1] ?? address;
}
