/** What the boxes of an MP4 file say (ISO/IEC 14496-12). */
export interface Mp4Facts {
  /** The names of the outer boxes, in their order. */
  boxes: string[];
  durationSeconds: number;
  /** Pixels. */
  width: number;
  height: number;
  /** How its picture is coded: `avc1` is H.264. */
  codec: string;
  frames: number;
  /** When the file, its track and its media were made, as written: seconds since 1904, 0 for unknown. */
  madeAt: number[];
}

/** Reads a file with one track of video; throws where a box is missing or does not fit into the one around it. */
export function mp4Facts(file: Uint8Array): Mp4Facts {
  const bytes = Buffer.from(file);
  const outer = boxesIn(bytes);
  const movie = find(outer, 'moov');
  const movieHeader = find(boxesIn(movie), 'mvhd');
  const track = find(boxesIn(movie), 'trak');
  const trackHeader = find(boxesIn(track), 'tkhd');
  const media = find(boxesIn(track), 'mdia');
  const samples = find(boxesIn(find(boxesIn(media), 'minf')), 'stbl');
  if (movieHeader[0] !== 0) throw new Error('a header with times of 64 bits is not read here');
  return {
    boxes: outer.map(({ name }) => name),
    durationSeconds: movieHeader.readUInt32BE(16) / movieHeader.readUInt32BE(12),
    width: trackHeader.readUInt32BE(trackHeader.length - 8) / 65_536,
    height: trackHeader.readUInt32BE(trackHeader.length - 4) / 65_536,
    codec: find(boxesIn(samples), 'stsd').toString('latin1', 12, 16),
    frames: find(boxesIn(samples), 'stsz').readUInt32BE(8),
    madeAt: [movieHeader, trackHeader, find(boxesIn(media), 'mdhd')].map((header) => header.readUInt32BE(4)),
  };
}

interface Box {
  name: string;
  content: Buffer;
}

function boxesIn(bytes: Buffer): Box[] {
  const boxes: Box[] = [];
  for (let offset = 0; offset < bytes.length; ) {
    const size = bytes.readUInt32BE(offset);
    const name = bytes.toString('latin1', offset + 4, offset + 8);
    if (size < 8 || offset + size > bytes.length) throw new Error(`box ${name} of ${size} bytes does not fit`);
    boxes.push({ name, content: bytes.subarray(offset + 8, offset + size) });
    offset += size;
  }
  return boxes;
}

function find(boxes: readonly Box[], name: string): Buffer {
  const box = boxes.find((each) => each.name === name);
  if (box === undefined) throw new Error(`no box ${name} among ${boxes.map((each) => each.name).join(', ')}`);
  return box.content;
}
