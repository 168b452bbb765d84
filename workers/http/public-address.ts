import { BlockList, isIP } from 'node:net';

/**
 * IPv4 ranges that lead nowhere public (https://www.iana.org/assignments/iana-ipv4-special-registry), and public-looking ranges
 * that belong to a cloud.
 */
const special4: readonly [network: string, prefix: number][] = [
  ['0.0.0.0', 8],
  ['10.0.0.0', 8],
  ['100.64.0.0', 10],
  ['127.0.0.0', 8],
  // Azure's machines reach their platform's DNS, health probe and metadata (the WireServer) here.
  ['168.63.129.16', 32],
  // Services inside IBM's cloud.
  ['161.26.0.0', 16],
  ['166.8.0.0', 14],
  ['169.254.0.0', 16],
  ['172.16.0.0', 12],
  ['192.0.0.0', 24],
  ['192.0.2.0', 24],
  ['192.88.99.0', 24],
  ['192.168.0.0', 16],
  ['198.18.0.0', 15],
  ['198.51.100.0', 24],
  ['203.0.113.0', 24],
  ['224.0.0.0', 3],
];

/**
 * IPv6 inside the global range with a special meaning: protocol assignments with Teredo, documentation, and 6to4, which embeds
 * any IPv4 (https://www.iana.org/assignments/iana-ipv6-special-registry).
 */
const special6: readonly [network: string, prefix: number][] = [
  ['2001::', 23],
  ['2001:db8::', 32],
  ['2002::', 16],
  ['3fff::', 20],
];

const special = new BlockList();
for (const [network, prefix] of special4) special.addSubnet(network, prefix, 'ipv4');
for (const [network, prefix] of special6) special.addSubnet(network, prefix, 'ipv6');

/** Only these are allocated; loopback, link-local, unique local, mapped IPv4 and NAT64 lie outside. */
const global6 = new BlockList();
global6.addSubnet('2000::', 3, 'ipv6');

/** Whether an address is on the internet: not this machine's, a private network's, or a cloud's metadata service. */
export function isPublicAddress(address: string): boolean {
  switch (isIP(address)) {
    case 4:
      return !special.check(address, 'ipv4');
    case 6: {
      // The zone of a link-local address is not part of it.
      const [bare = ''] = address.split('%');
      return global6.check(bare, 'ipv6') && !special.check(bare, 'ipv6');
    }
    default:
      return false;
  }
}
