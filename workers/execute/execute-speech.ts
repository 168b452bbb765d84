import { once } from 'node:events';
import { PassThrough } from 'node:stream';
import { type SpeechEnd, type SpeechJobRequest, speechTypes } from '../../shared/capabilities/speech.ts';
import { ApiError } from '../../shared/errors.ts';
import { hasTokenPrice } from '../../shared/money/cost.ts';
import { hasOutput } from '../../shared/money/token-counts.ts';
import { spokenCharacters } from '../usage/billed-quantities.ts';
import { estimateSpeech } from '../usage/estimate-media.ts';
import { requestText } from '../vendors/request-body.ts';
import { failureAfterBegin } from '../vendors/support/vendor-task-calls.ts';
import type { CallFiles, FrameSink, StoredFile, VendorFrame } from '../vendors/vendor.ts';
import { type Execute, methodOf } from './execution.ts';

/**
 * Speech. Its audio is relayed to streaming clients, and stored if the answer can be read again later: the end frame then names
 * the file. Vendors always stream the audio.
 */
export const executeSpeech: Execute = async ({ vendor, row, keep, call, sink }) => {
  const request = JSON.parse(requestText(call.request)) as SpeechJobRequest;
  const { stream_format: events, ...fields } = request;
  const asked = events || row.speech?.events ? { ...fields, stream_format: 'sse' } : fields;
  const isStored = keep || !call.stream;
  const store = isStored ? new AudioFile(call.files, speechTypes[request.response_format]) : undefined;
  const audio = new AudioSink(call.stream ? sink : undefined, store);
  try {
    const answer = await methodOf(vendor, 'speak')({ ...call, request: JSON.stringify(asked) }, audio);
    if (audio.frames === 0) throw new ApiError('server_error', "The model's vendor answered without audio.");
    const isPricedByTokens = row.prices !== undefined && hasTokenPrice(row.prices);
    const isCounted = !isPricedByTokens || (answer.usage !== null && hasOutput(answer.usage));
    const usage = isCounted ? answer.usage : estimateSpeech(request);
    const file = await store?.end();
    const end: SpeechEnd = { usage, ...(events && { events: true }), ...(file && { file }) };
    return { body: JSON.stringify(end), usage, quantities: { characters: spokenCharacters(request) } };
  } catch (error) {
    // Audio that is only stored is not a frame of the answer, so another call could follow; but this one is being charged.
    throw call.stream || audio.frames === 0 ? error : failureAfterBegin(error);
  } finally {
    store?.close();
  }
};

/** Maximum bytes of stored audio per answer: ten minutes without any compression. */
const maxAudioBytes = 64 * 1024 * 1024;

/** Passes frames of audio to the relay and the file, at the pace of the slower. */
class AudioSink implements FrameSink {
  frames = 0;
  readonly #relay: FrameSink | undefined;
  readonly #file: AudioFile | undefined;

  constructor(relay: FrameSink | undefined, file: AudioFile | undefined) {
    this.#relay = relay;
    this.#file = file;
  }

  write(frame: VendorFrame): boolean {
    this.frames += 1;
    const isRelayed = this.#relay?.write(frame) ?? true;
    const isWritten = this.#file?.write(Buffer.from(JSON.parse(frame.text).audio, 'base64')) ?? true;
    return isRelayed && isWritten;
  }

  async drained(): Promise<void> {
    await Promise.all([this.#relay?.drained(), this.#file?.drained()]);
  }
}

/** A result file that is written as its audio arrives. It fails when it grows too long. */
class AudioFile {
  readonly #content = new PassThrough();
  #bytes = 0;
  readonly #saved: Promise<StoredFile>;

  constructor(files: CallFiles, type: string) {
    this.#saved = files.save(this.#content, type);
    // Failures are still reported: by `drained`, through the content, which is destroyed, and by `end` itself.
    this.#saved.catch((error) => this.#content.destroy(error));
    this.#content.on('error', () => undefined);
  }

  /** Returns false when the file has failed as well, so that the writer learns of it from `drained`. */
  write(bytes: Buffer): boolean {
    this.#bytes += bytes.length;
    if (this.#bytes > maxAudioBytes) {
      this.#content.destroy(new ApiError('server_error', `The vendor's audio has more than ${maxAudioBytes} bytes.`));
    }
    return !this.#content.destroyed && this.#content.write(bytes);
  }

  /** @throws the error of storing. */
  async drained(): Promise<void> {
    if (this.#content.destroyed) await this.#saved;
    if (this.#content.writableNeedDrain) await once(this.#content, 'drain');
  }

  async end(): Promise<StoredFile> {
    this.#content.end();
    return await this.#saved;
  }

  /** Discards an incomplete file: nothing of it stays. */
  close(): void {
    if (!this.#content.writableFinished) this.#content.destroy(new Error('the audio broke off'));
  }
}
