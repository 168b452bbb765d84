import type { Endpoint } from './endpoint.ts';
import { invalidParameter } from './invalid-request.ts';
import { prepareSpeech, type SpeechTraits } from './prepare-speech.ts';
import { speechView } from './speech-view.ts';

/**
 * What the model must be able to do for a request. Events need a vendor that has them, as at OpenAI: they tell the usage.
 */
const checkSpeech: NonNullable<Endpoint['check']> = ({ traits }, { id, speech }) => {
  const { format, events } = traits as SpeechTraits;
  if (!speech?.formats.includes(format)) {
    const message = `The model \`${id}\` does not speak '${format}'. Its formats are: ${speech?.formats.join(', ')}.`;
    throw invalidParameter('response_format', message);
  }
  if (events && !speech.events) {
    throw invalidParameter('stream_format', `The model \`${id}\` does not send its audio as events.`);
  }
};

/** `POST /v1/audio/speech` (https://platform.openai.com/docs/api-reference/audio/createSpeech). */
export const audioSpeech: Endpoint = {
  name: 'audio.speech',
  path: '/v1/audio/speech',
  capability: 'speech',
  prepare: prepareSpeech,
  check: checkSpeech,
  view: speechView,
};
