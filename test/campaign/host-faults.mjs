// Loaded into a process of the gateway before its own code: moves its clock, or fills its disk, when it is told to, by a
// message of its parent's.
import fs from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';

const RealDate = Date;
let shiftMs = 0;

function ShiftedDate(...given) {
  if (new.target === undefined) return new RealDate(RealDate.now() + shiftMs).toString();
  const date = given.length === 0 ? new RealDate(RealDate.now() + shiftMs) : new RealDate(...given);
  Object.setPrototypeOf(date, new.target.prototype);
  return date;
}
Object.setPrototypeOf(ShiftedDate, RealDate);
ShiftedDate.prototype = RealDate.prototype;
ShiftedDate.now = () => RealDate.now() + shiftMs;
ShiftedDate.parse = RealDate.parse;
ShiftedDate.UTC = RealDate.UTC;
globalThis.Date = ShiftedDate;

let isDiskFull = false;
const { writeFile } = fs.promises;
fs.promises.writeFile = async (file, data, ...rest) => {
  if (!isDiskFull) return await writeFile(file, data, ...rest);
  // The file is made, and nothing goes into it.
  await writeFile(file, '', ...rest);
  throw Object.assign(new Error('ENOSPC: no space left on device, write'), {
    code: 'ENOSPC',
    errno: -28,
    syscall: 'write',
  });
};
syncBuiltinESMExports();

process.on('message', (message) => {
  if (typeof message?.isDiskFull === 'boolean') isDiskFull = message.isDiskFull;
  if (typeof message?.clockShiftMs === 'number') shiftMs = message.clockShiftMs;
});
