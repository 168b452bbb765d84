import type { SeededRandom } from '../support/seeded-random.ts';

/** Bytes for a WebSocket, in the pieces in which they are sent. */
export interface Frames {
  readonly name: string;
  readonly bytes: readonly Buffer[];
}

const opcodes = { continuation: 0, text: 1, binary: 2, close: 8, ping: 9, pong: 10 } as const;

interface FrameOptions {
  readonly isFinal?: boolean;
  readonly reserved?: number;
  readonly isMasked?: boolean;
  /** What is said of its length; left out: the truth. */
  readonly length?: number;
}

/** One frame, RFC 6455. */
function frame(opcode: number, payload: Buffer | string, options: FrameOptions = {}): Buffer {
  const data = Buffer.from(payload);
  const { isFinal = true, reserved = 0, isMasked = true, length = data.length } = options;
  const size = length < 126 ? 0 : length < 65_536 ? 2 : 8;
  const head = Buffer.alloc(2 + size);
  head[0] = (isFinal ? 0x80 : 0) | (reserved << 4) | opcode;
  head[1] = (isMasked ? 0x80 : 0) | (size === 0 ? length : size === 2 ? 126 : 127);
  if (size === 2) head.writeUInt16BE(length, 2);
  if (size === 8) head.writeBigUInt64BE(BigInt(length), 2);
  // A mask of zeros changes nothing.
  return Buffer.concat([head, ...(isMasked ? [Buffer.alloc(4)] : []), data]);
}

const create = JSON.stringify({ type: 'response.create', model: 'sandbox-chat', input: 'Hi', max_output_tokens: 16 });
const closeBody = (code: number, reason: Buffer | string = ''): Buffer =>
  Buffer.concat([Buffer.from([code >> 8, code & 255]), Buffer.from(reason)]);

const kinds: readonly (() => Frames)[] = [
  () => ({ name: 'a binary message', bytes: [frame(opcodes.binary, create)] }),
  () => ({ name: 'an empty text', bytes: [frame(opcodes.text, '')] }),
  () => ({ name: 'an empty binary', bytes: [frame(opcodes.binary, '')] }),
  () => ({ name: 'invalid UTF-8', bytes: [frame(opcodes.text, Buffer.from([0xc3, 0x28]))] }),
  () => ({ name: 'a byte a fragment', bytes: fragments(create, 1) }),
  () => ({ name: 'fragments that do not end', bytes: fragments(create, 9).slice(0, -1) }),
  () => ({
    name: 'ten thousand empty fragments',
    bytes: [
      frame(opcodes.text, '', { isFinal: false }),
      Buffer.concat(Array(10_000).fill(frame(0, '', { isFinal: false }))),
    ],
  }),
  () => ({ name: 'a continuation of nothing', bytes: [frame(opcodes.continuation, create)] }),
  () => ({
    name: 'a text inside of a text',
    bytes: [frame(opcodes.text, 'a', { isFinal: false }), frame(opcodes.text, create)],
  }),
  () => ({
    name: 'a ping inside of a text',
    bytes: [
      frame(opcodes.text, create.slice(0, 9), { isFinal: false }),
      frame(opcodes.ping, 'x'),
      frame(0, create.slice(9)),
    ],
  }),
  () => ({ name: 'pings', bytes: Array.from({ length: 50 }, () => frame(opcodes.ping, 'x'.repeat(125))) }),
  () => ({ name: 'a ping that is too long', bytes: [frame(opcodes.ping, 'x'.repeat(126))] }),
  () => ({ name: 'a ping in fragments', bytes: [frame(opcodes.ping, 'x', { isFinal: false })] }),
  () => ({ name: 'pongs that nobody asked for', bytes: Array.from({ length: 50 }, () => frame(opcodes.pong, '')) }),
  () => ({ name: 'a frame without a mask', bytes: [frame(opcodes.text, create, { isMasked: false })] }),
  () => ({ name: 'reserved bits', bytes: [frame(opcodes.text, create, { reserved: 7 })] }),
  () => ({ name: 'compressed by its bit', bytes: [frame(opcodes.text, create, { reserved: 4 })] }),
  () => ({ name: 'a reserved opcode', bytes: [frame(5, create)] }),
  () => ({ name: 'a length of 2^62', bytes: [frame(opcodes.text, create, { length: 2 ** 62 })] }),
  () => ({
    name: 'a length of 19 MiB, and little of it',
    bytes: [frame(opcodes.text, create, { length: 19 * 1024 * 1024 })],
  }),
  () => ({ name: 'a message of 21 MiB', bytes: [frame(opcodes.text, `"${'x'.repeat(21 * 1024 * 1024)}"`)] }),
  () => ({
    name: 'a message of 2 MiB',
    bytes: [frame(opcodes.text, JSON.stringify({ type: 'response.create', input: 'x'.repeat(2 * 1024 * 1024) }))],
  }),
  () => ({ name: 'a close without a code', bytes: [frame(opcodes.close, '')] }),
  () => ({ name: 'a close of one byte', bytes: [frame(opcodes.close, 'x')] }),
  () => ({ name: 'a close with a code that must not be sent', bytes: [frame(opcodes.close, closeBody(1005))] }),
  () => ({ name: 'a close with the code 0', bytes: [frame(opcodes.close, closeBody(0))] }),
  () => ({
    name: 'a close whose reason is no UTF-8',
    bytes: [frame(opcodes.close, closeBody(1000, Buffer.from([0xff])))],
  }),
  () => ({
    name: 'a request, then a close at once',
    bytes: [Buffer.concat([frame(opcodes.text, create), frame(opcodes.close, closeBody(1000))])],
  }),
  () => ({
    name: 'messages after a close',
    bytes: [frame(opcodes.close, closeBody(1000)), frame(opcodes.text, create)],
  }),
  () => ({
    name: 'forty requests at once',
    bytes: [
      Buffer.concat(
        Array.from({ length: 40 }, (_, lane) => frame(opcodes.text, create.replace('{', `{"stream_id":"${lane}",`))),
      ),
    ],
  }),
  () => ({
    name: 'two hundred requests of one lane',
    bytes: [Buffer.concat(Array<Buffer>(200).fill(frame(opcodes.text, create)))],
  }),
  () => ({ name: 'HTTP', bytes: [Buffer.from('GET / HTTP/1.1\r\nhost: x\r\n\r\n')] }),
  () => ({ name: 'zeros', bytes: [Buffer.alloc(5000)] }),
];

function fragments(text: string, size: number): Buffer[] {
  const parts: string[] = [];
  for (let at = 0; at < text.length; at += size) parts.push(text.slice(at, at + size));
  return parts.map((part, index) =>
    frame(index === 0 ? opcodes.text : opcodes.continuation, part, { isFinal: index === parts.length - 1 }),
  );
}

export function drawFrames(random: SeededRandom): Frames {
  return random.pick(kinds)();
}
