/** `hostile-process.ts NAME WIDTH URL KEY PORT`: an attack by so many connections, beside a vendor on that port, until the process is ended. */
import { constants, setPriority } from 'node:os';
import { attacks } from './attacks.ts';
import { startEndlessVendor } from './endless-vendor.ts';

// Of hostile clients only what they do to the gateway counts: a host of their own would leave its cores alone.
setPriority(constants.priority.PRIORITY_LOW);

const [name, width, url, key, port] = process.argv.slice(2) as [string, string, string, string, string];
const attack = attacks.find((each) => each.name === name);
if (!attack) throw new Error(`no attack is called ${name}`);
startEndlessVendor(Number(port));
const { signal } = new AbortController();
for (let index = 0; index < Number(width); index++) void attack.run({ url, key }, signal, index);
process.send?.('attacking');
// The test may die without ending it.
process.once('disconnect', () => process.exit());
