/** Facts from the first bytes of an image file. */
export interface ImageHeader {
  format: 'PNG' | 'JPEG' | 'GIF' | 'WebP';
  mediaType: string;
  width: number;
  height: number;
}

type HeaderReader = (bytes: Buffer) => ImageHeader | undefined;

const readers: readonly HeaderReader[] = [readPng, readGif, readWebp, readJpeg];

/** Parses format and size (pixels) from an image's bytes; undefined if it is not PNG, JPEG, GIF or WebP, or is truncated. */
export function readImageHeader(bytes: Buffer): ImageHeader | undefined {
  for (const read of readers) {
    try {
      const header = read(bytes);
      if (header !== undefined) return header;
    } catch (error) {
      if (!(error instanceof RangeError)) throw error;
    }
  }
  return undefined;
}

function readPng(bytes: Buffer): ImageHeader | undefined {
  if (bytes.toString('latin1', 0, 8) !== '\x89PNG\r\n\x1a\n') return undefined;
  return { format: 'PNG', mediaType: 'image/png', width: bytes.readUInt32BE(16), height: bytes.readUInt32BE(20) };
}

function readGif(bytes: Buffer): ImageHeader | undefined {
  if (!/^GIF8[79]a$/.test(bytes.toString('latin1', 0, 6))) return undefined;
  return { format: 'GIF', mediaType: 'image/gif', width: bytes.readUInt16LE(6), height: bytes.readUInt16LE(8) };
}

function readWebp(bytes: Buffer): ImageHeader | undefined {
  if (bytes.toString('latin1', 0, 4) !== 'RIFF' || bytes.toString('latin1', 8, 12) !== 'WEBP') return undefined;
  const size = webpSize(bytes, bytes.toString('latin1', 12, 16));
  return size && { format: 'WebP', mediaType: 'image/webp', ...size };
}

function webpSize(bytes: Buffer, chunk: string): { width: number; height: number } | undefined {
  if (chunk === 'VP8X') return { width: bytes.readUIntLE(24, 3) + 1, height: bytes.readUIntLE(27, 3) + 1 };
  if (chunk === 'VP8 ') return { width: bytes.readUInt16LE(26) & 0x3fff, height: bytes.readUInt16LE(28) & 0x3fff };
  if (chunk !== 'VP8L') return undefined;
  const packed = bytes.readUInt32LE(21);
  return { width: (packed & 0x3fff) + 1, height: ((packed >>> 14) & 0x3fff) + 1 };
}

function readJpeg(bytes: Buffer): ImageHeader | undefined {
  if (bytes.readUInt16BE(0) !== 0xffd8) return undefined;
  for (let offset = 2; ; ) {
    if (bytes.readUInt8(offset) !== 0xff) return undefined;
    const marker = bytes.readUInt8(offset + 1);
    // Padding bytes may precede a marker.
    if (marker === 0xff) offset += 1;
    else if (isFrameMarker(marker)) {
      const height = bytes.readUInt16BE(offset + 5);
      return { format: 'JPEG', mediaType: 'image/jpeg', width: bytes.readUInt16BE(offset + 7), height };
    } else offset += 2 + bytes.readUInt16BE(offset + 2);
  }
}

/** Start-of-frame markers contain the size; C4, C8 and CC lie in their range but are tables and extensions. */
function isFrameMarker(marker: number): boolean {
  return marker >= 0xc0 && marker <= 0xcf && marker !== 0xc4 && marker !== 0xc8 && marker !== 0xcc;
}
