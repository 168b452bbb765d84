import { type SpeechEnd, type SpeechFormat, speechTypes } from '../../../shared/capabilities/speech.ts';
import type { Frame } from '../../../shared/jobs/append.ts';
import type { BytesView, View, ViewedJob } from '../../replies/view.ts';
import type { SpeechViewOptions } from './parse-speech.ts';

/**
 * The view of speech. Bytes: the audio. Events
 * (https://platform.openai.com/docs/api-reference/audio/speech-audio-delta-event): `speech.audio.delta`, then
 * `speech.audio.done`, which also has the file's link, if there is one. As the result of a job: the file's link.
 */
export const speechView: View<SpeechViewOptions> = {
  stream: (job) => (frame) => {
    if (frame.type === 'delta') return [`data: {"type":"speech.audio.delta",${frame.text.slice(1)}`];
    return frame.type === 'end' ? [`data: ${doneEvent(job, readEnd(frame))}`] : [];
  },
  heldFromEnd: true,
  final: (frames) => {
    const end = frames.at(-1) as Frame;
    return readEnd(end).events ? frames : [end];
  },
  held: (job, frames) => JSON.stringify(fileOf(job, readEnd(frames.at(-1) as Frame)) ?? null),
  bytes: ({ viewOptions }) => (viewOptions.events ? undefined : bytesOf(viewOptions.format)),
};

function bytesOf(format: SpeechFormat): BytesView {
  return {
    contentType: speechTypes[format],
    chunk: (frame) => {
      if (frame.type !== 'delta') return undefined;
      return Buffer.from((JSON.parse(frame.text) as { audio: string }).audio, 'base64');
    },
    file: (end) => readEnd(end).file?.file,
  };
}

function readEnd(end: Frame): SpeechEnd {
  return JSON.parse(end.text) as SpeechEnd;
}

function doneEvent(job: ViewedJob, end: SpeechEnd): string {
  return JSON.stringify({ type: 'speech.audio.done', usage: end.usage ?? undefined, ...fileOf(job, end) });
}

function fileOf(job: ViewedJob, { file }: SpeechEnd): Record<string, unknown> | undefined {
  return file && { url: job.link(file.file), content_type: file.type, bytes: file.bytes };
}
