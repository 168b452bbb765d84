import encoderLibrary from 'h264-mp4-encoder';
import { type Clip, drawFrames, FRAMES_PER_SECOND } from './draw-video.ts';

/** From 10 (best) to 51: flat colours and letters stay sharp enough. */
const QUANTIZATION = 30;

/** The boxes with the creation times of the file, its track and its media (ISO/IEC 14496-12). */
const timedBoxes = ['mvhd', 'tkhd', 'mdhd'];

/** The clip as MP4 with H.264: 10 to 20 ms of processor time per frame. The same clip always gives the same file. */
export async function encodeVideo(clip: Clip): Promise<Uint8Array> {
  const encoder = await encoderLibrary.createH264MP4Encoder();
  try {
    encoder.width = clip.width;
    encoder.height = clip.height;
    encoder.frameRate = FRAMES_PER_SECOND;
    encoder.speed = 10;
    encoder.quantizationParameter = QUANTIZATION;
    // One key frame is enough for a clip this short; the others contain only changes.
    encoder.groupOfPictures = clip.seconds * FRAMES_PER_SECOND;
    encoder.initialize();
    for (const frame of drawFrames(clip)) encoder.addFrameYuv(frame);
    encoder.finalize();
    const bytes = encoder.FS.readFile(encoder.outputFilename);
    encoder.FS.unlink(encoder.outputFilename);
    clearTimes(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength));
    return bytes;
  } finally {
    encoder.delete();
  }
}

function clearTimes(file: Buffer): void {
  for (const name of timedBoxes) {
    // These boxes come after the picture's bytes. Version and flags come first, then two times of 32 bits.
    const start = file.lastIndexOf(name) + 8;
    file.fill(0, start, start + 8);
  }
}
