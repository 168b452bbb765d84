import { isIPv6 } from 'node:net';

/** The network of an address. One holder of an IPv6 address has 2^64 of them, so they count as one, by their first half. */
export function networkOf(address: string): string {
  const bare = address.replace(/%.*$/, '');
  if (!isIPv6(bare)) return address;
  // The canonical notation.
  const [before = '', after = ''] = new URL(`http://[${bare}]`).hostname.slice(1, -1).split('::');
  const [first, last] = [before, after].map((half) => (half === '' ? [] : half.split(':'))) as [string[], string[]];
  return [...first, ...Array(8 - first.length - last.length).fill('0'), ...last].slice(0, 4).join(':');
}
