import { type LookupAddress, lookup } from 'node:dns';
import { Resolver } from 'node:dns/promises';

/** Resolves a host name to all its addresses, as `dns.lookup` with `all` does. */
export type ResolveHost = (
  host: string,
  callback: (error: NodeJS.ErrnoException | null, addresses: LookupAddress[]) => void,
) => void;

/** As connections to vendors do: with what else this machine knows, such as the names of its network. */
export const askSystem: ResolveHost = (host, callback) => lookup(host, { all: true }, callback);

/** How long (ms) name servers are asked for a name: as long as its connection may take. They would be asked for three times as long. */
const askedMs = 10_000;

/**
 * Asks the name servers themselves. The system's lookup occupies a thread as long as they are silent, and cannot be aborted: two names of
 * a caller's choice would keep those of all vendors from being resolved.
 * @param open opens a resolver for one name. It reads the list of name servers, which changes with this machine's network, at that moment
 */
export function askNameServers(open = () => new Resolver()): ResolveHost {
  return (host, callback) => {
    const names = open();
    const late = setTimeout(() => names.cancel(), askedMs);
    const asked = [
      names.resolve4(host).then((found) => found.map((address) => ({ address, family: 4 }))),
      names.resolve6(host).then((found) => found.map((address) => ({ address, family: 6 }))),
    ];
    void Promise.allSettled(asked).then((answers) => {
      clearTimeout(late);
      const found = answers.flatMap((answer) => (answer.status === 'fulfilled' ? answer.value : []));
      const failed = answers.find((answer) => answer.status === 'rejected');
      callback(found.length === 0 ? (failed?.reason as NodeJS.ErrnoException) : null, found);
    });
  };
}
