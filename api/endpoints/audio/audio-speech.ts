import { speechTypes } from '../../../shared/capabilities/speech.ts';
import { type Check, defineEndpoint, type Resolve } from '../../pipeline/endpoint.ts';
import { invalidParameter } from '../../pipeline/request-fields.ts';
import { eventStream } from '../../reference/operation.ts';
import { withFieldCheck } from '../check-media-fields.ts';
import { parseSpeech, type SpeechRequirements, type SpeechViewOptions, withFormat } from './parse-speech.ts';
import { speechView } from './speech-view.ts';

/** Checks a request against the model. As at OpenAI, events need a vendor that sends them: they report the usage. */
const checkSpeech: Check<SpeechRequirements> = ({ requirements }, { id, speech }) => {
  const { format, events } = requirements;
  if (!speech?.formats.includes(format)) {
    const message = `The model \`${id}\` does not speak '${format}'. Its formats are: ${speech?.formats.join(', ')}.`;
    throw invalidParameter('response_format', message);
  }
  if (events && speech.events === false) {
    throw invalidParameter('stream_format', `The model \`${id}\` does not send its audio as events.`);
  }
};

/** Selects a format of the model if the request has none. */
const fillIn: Resolve<SpeechRequirements, SpeechViewOptions> = async (read, { services }) => {
  const { format, isFormatGiven } = read.requirements;
  const [first, ...others] = services.catalogue.find(read.model)?.speech?.formats ?? [];
  if (isFormatGiven || first === undefined || [first, ...others].includes(format)) return read;
  // The text is bounded, but unknown fields are not: a request with large ones stays as it is.
  return typeof read.request === 'string' ? withFormat({ ...read, request: read.request }, first) : read;
};

/** `POST /v1/audio/speech` (https://platform.openai.com/docs/api-reference/audio/createSpeech). */
export const audioSpeech = defineEndpoint({
  name: 'audio.speech',
  path: '/v1/audio/speech',
  capability: 'speech',
  operation: {
    id: 'createSpeech',
    tag: 'Audio',
    summary: 'Create speech from text',
    json: 'SpeechRequest',
    answer: { types: [...Object.values(speechTypes), eventStream] },
    example: { model: 'speech', json: { voice: 'alloy', input: 'Hello!' }, output: 'hello.mp3' },
  },
  parse: parseSpeech,
  resolve: fillIn,
  check: withFieldCheck('speech', checkSpeech),
  view: speechView,
});
