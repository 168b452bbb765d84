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

function noSpace() {
  const error = new Error('ENOSPC: no space left on device, write');
  return Object.assign(error, { code: 'ENOSPC', errno: -28, syscall: 'write' });
}

/** The same content, which fails at the chunk that finds the disk full. */
async function* guarded(content) {
  for await (const chunk of content) {
    if (isDiskFull) throw noSpace();
    yield chunk;
  }
}

const isStreamed = (data) => typeof data === 'object' && !ArrayBuffer.isView(data);

/** A full disk makes a file, and puts nothing into it. `file`: a path, or an open file. */
function failing(writeWhole) {
  return async function write(file, data, ...rest) {
    if (isStreamed(data)) return await writeWhole.call(this, file, guarded(data), ...rest);
    if (!isDiskFull) return await writeWhole.call(this, file, data, ...rest);
    await writeWhole.call(this, file, '', ...rest);
    throw noSpace();
  };
}
fs.promises.writeFile = failing(fs.promises.writeFile);
fs.promises.appendFile = failing(fs.promises.appendFile);

// Node shows the class of open files by an instance only.
const file = await fs.promises.open(new URL(import.meta.url));
const openFile = Object.getPrototypeOf(file);
await file.close();
for (const name of ['writeFile', 'appendFile']) {
  const whole = openFile[name];
  const write = failing((opened, ...rest) => whole.call(opened, ...rest));
  openFile[name] = function writeWhole(data, ...rest) {
    return write(this, data, ...rest);
  };
}
for (const name of ['write', 'writev']) {
  const part = openFile[name];
  openFile[name] = async function writePart(...given) {
    if (isDiskFull) throw noSpace();
    return await part.apply(this, given);
  };
}

// By number: streams of files, and what is written with callbacks. Standard output is no disk.
for (const name of ['write', 'writev']) {
  const part = fs[name];
  fs[name] = (fd, ...rest) => {
    if (!isDiskFull || fd <= 2) return part(fd, ...rest);
    process.nextTick(
      rest.findLast((given) => typeof given === 'function'),
      noSpace(),
    );
  };
}
for (const name of ['writeSync', 'writevSync']) {
  const part = fs[name];
  fs[name] = (fd, ...rest) => {
    if (isDiskFull && fd > 2) throw noSpace();
    return part(fd, ...rest);
  };
}
syncBuiltinESMExports();

process.on('message', (message) => {
  if (typeof message?.isDiskFull === 'boolean') isDiskFull = message.isDiskFull;
  if (typeof message?.clockShiftMs === 'number') shiftMs = message.clockShiftMs;
});
