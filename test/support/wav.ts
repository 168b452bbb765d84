/** Silence as a WAV file: 16 kHz, 16 bit, mono. */
export function wav(seconds: number): Buffer {
  const rate = 16_000;
  const data = Math.round(seconds * rate) * 2;
  const file = Buffer.alloc(44 + data);
  file.write('RIFF', 0);
  file.writeUInt32LE(36 + data, 4);
  file.write('WAVEfmt ', 8);
  file.writeUInt32LE(16, 16);
  file.writeUInt16LE(1, 20);
  file.writeUInt16LE(1, 22);
  file.writeUInt32LE(rate, 24);
  file.writeUInt32LE(rate * 2, 28);
  file.writeUInt16LE(2, 32);
  file.writeUInt16LE(16, 34);
  file.write('data', 36);
  file.writeUInt32LE(data, 40);
  return file;
}
