import { type Frame, frameLine, parseBatch } from '../../shared/jobs/append.ts';
import type { VendorFrame } from '../../workers/vendors/vendor.ts';

/** The frames as the log holds them and the reader gives them back, in batches of these sizes. */
export function throughLog(frames: readonly VendorFrame[], sizes: readonly number[]): Frame[] {
  const read: Frame[] = [];
  for (let start = 0, turn = 0; start < frames.length; turn += 1) {
    const end = start + Math.max(1, sizes[turn % sizes.length] ?? 1);
    const lines = frames.slice(start, end).map((frame) => frameLine(frame.type, frame.text));
    read.push(...parseBatch(`1 ${start + 1}\n${lines.join('\n')}`).frames);
    start = end;
  }
  return read;
}
