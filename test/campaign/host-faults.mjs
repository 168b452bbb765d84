// Loaded into a process of the gateway before its own code: moves its clock when it is told to, by a message of its parent's.
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

process.on('message', (message) => {
  if (typeof message?.clockShiftMs === 'number') shiftMs = message.clockShiftMs;
});
