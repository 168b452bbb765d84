import { ApiError } from '../../../shared/errors.ts';
import type { Reading } from '../../http/exchange.ts';
import type { HttpClient, HttpPost } from '../../http/http-client.ts';
import type { FrameSink, VendorAnswer } from '../vendor.ts';
import { AudioPieces } from './audio-pieces.ts';
import { DeltaStream } from './delta-stream.ts';
import { refuseText } from './refuse-text.ts';

/**
 * Posts a request whose answer is the bytes of an audio file, and passes them on as they arrive. There is no usage.
 * @throws ApiError `stream_interrupted` for audio that broke off after its first part.
 */
export async function relayAudio(http: HttpClient, post: HttpPost, sink: FrameSink): Promise<VendorAnswer> {
  const stream = new AudioStream(sink);
  try {
    const text = await http.post({ ...post, onChunk: (bytes, type) => stream.readAs(type, bytes) });
    if (text !== null) throw new ApiError('server_error', "The model's vendor answered with JSON in place of audio.");
    return stream.end();
  } catch (error) {
    throw stream.failure(error);
  }
}

/** One speech, whose bytes are its audio. */
class AudioStream extends DeltaStream {
  private readonly audio = new AudioPieces((text) => this.write(text));

  readAs(type: string, bytes: Buffer): Reading {
    refuseText(type, 'audio');
    return this.read(bytes);
  }

  end(): VendorAnswer {
    this.audio.flush();
    return { body: '{"usage":null}', usage: null };
  }

  override failure(thrown: unknown): ApiError {
    this.audio.flush();
    return super.failure(thrown);
  }

  protected override take(bytes: Buffer): void {
    this.audio.add(bytes);
  }
}
