import { ApiError } from '../../shared/errors.ts';
import type { HttpClient, HttpPost, Reading } from '../http.ts';
import { interrupted } from './interrupted.ts';
import type { FrameSink, VendorAnswer } from './vendor.ts';

/** The most audio in one frame, in bytes: as base64 it still travels inline. */
const longestPiece = 32 * 1024;

/**
 * Posts what is answered by the bytes of an audio file, and passes them on as they come. Usage is not told.
 * @throws ApiError `stream_interrupted` for audio that broke off after some of it was said.
 */
export async function relayAudio(http: HttpClient, post: HttpPost, sink: FrameSink): Promise<VendorAnswer> {
  const audio = new AudioRelay(sink);
  try {
    const text = await http.post({ ...post, onChunk: (bytes) => audio.take(bytes) });
    if (text !== null) throw new ApiError('server_error', "The model's vendor answered with JSON in place of audio.");
    audio.flush();
    return { body: '{"usage":null}', usage: null };
  } catch (error) {
    audio.flush();
    throw audio.frames === 0 ? ApiError.from(error) : interrupted(error);
  }
}

/** Bytes in, `delta` frames out. What comes in one turn of the event loop leaves as few frames: pieces may be tiny. */
class AudioRelay {
  frames = 0;
  private readonly sink: FrameSink;
  private pieces: Buffer[] = [];
  private piecesSize = 0;
  private flushing: NodeJS.Immediate | undefined;
  private isFull = false;

  constructor(sink: FrameSink) {
    this.sink = sink;
  }

  take(bytes: Buffer): Reading {
    this.pieces.push(bytes);
    this.piecesSize += bytes.length;
    if (this.piecesSize >= longestPiece) this.flush();
    else this.flushing ??= setImmediate(() => this.flush());
    if (!this.isFull) return undefined;
    this.isFull = false;
    return this.sink.drained();
  }

  flush(): void {
    clearImmediate(this.flushing);
    this.flushing = undefined;
    const audio = Buffer.concat(this.pieces);
    this.pieces = [];
    this.piecesSize = 0;
    for (let at = 0; at < audio.length; at += longestPiece) {
      this.frames += 1;
      const text = `{"audio":"${audio.toString('base64', at, at + longestPiece)}"}`;
      if (!this.sink.write({ type: 'delta', text })) this.isFull = true;
    }
  }
}
