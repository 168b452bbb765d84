import type { Check } from '../../pipeline/endpoint.ts';
import { invalidParameter } from '../../pipeline/request-fields.ts';
import type { VideoRequirements } from './parse-video.ts';

/** Validates a request for a video against its model's row: size, length, input picture, remixing. */
export const checkVideo: Check<VideoRequirements> = ({ requirements }, { id, video }) => {
  // Without facts in the row the vendor decides.
  if (video === undefined) return undefined;
  const { size, seconds, hasInput, isInputLinked, remixedFrom } = requirements;
  if (remixedFrom !== undefined) {
    if (!video.remix) throw invalidParameter('model', `The model \`${id}\` does not remix videos.`);
    // Size and length are those of the source video, which the model has made.
    return undefined;
  }
  if (size !== undefined) checkChoice('size', size, video.sizes);
  if (seconds !== undefined) checkChoice('seconds', seconds, video.seconds);
  if (hasInput && !video.input) {
    throw invalidParameter('input_reference', `The model \`${id}\` takes no picture to begin with.`);
  }
  if (hasInput && video.input === 'links' && !isInputLinked) {
    throw invalidParameter('input_reference', `The vendor of the model \`${id}\` takes links to pictures only.`);
  }
  if (!hasInput && video.input === 'always') {
    throw invalidParameter('input_reference', `The model \`${id}\` makes videos of pictures only.`);
  }
  return undefined;
};

function checkChoice(param: string, value: string, allowed: readonly string[]): void {
  if (allowed.includes(value)) return;
  const list = allowed.map((choice) => `'${choice}'`).join(', ');
  throw invalidParameter(param, `Invalid value for '${param}'. Supported values are: ${list}.`);
}
