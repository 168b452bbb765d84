import type { ImageTask } from '../../../shared/capabilities/image.ts';
import type { Check } from '../../pipeline/endpoint.ts';
import { invalidParameter } from '../../pipeline/request-fields.ts';
import type { ImageRequirements } from './parse-image.ts';

const taskNames: Record<ImageTask, string> = {
  generation: 'generate images from a prompt',
  edit: 'edit images',
  variation: 'make variations of images',
};

/** Validates an image request against its model's row: the task, `size`, `n`, `stream` and `partial_images`. */
export function checkImage(task: ImageTask): Check<ImageRequirements> {
  return ({ stream, requirements }, { id, image }) => {
    // Without facts in the row the vendor decides.
    if (image === undefined) return;
    const { n, size, partialImages } = requirements;
    if (!image.tasks.includes(task))
      throw invalidParameter('model', `The model \`${id}\` does not ${taskNames[task]}.`);
    if (size !== undefined) checkSize(size, image.sizes);
    if (n > image.most) {
      throw invalidParameter(
        'n',
        `Invalid 'n': expected a value <= ${image.most} with \`${id}\`, but got ${n} instead.`,
      );
    }
    if (image.partial) return;
    if (stream) throw invalidParameter('stream', `Invalid 'stream': the model \`${id}\` does not stream images.`);
    if (partialImages > 0) {
      throw invalidParameter(
        'partial_images',
        `Invalid 'partial_images': the model \`${id}\` shows no partial images.`,
      );
    }
  };
}

function checkSize(size: string, sizes: readonly string[] | undefined): void {
  if (sizes === undefined) {
    if (/^[1-9]\d{0,4}x[1-9]\d{0,4}$|^auto$/.test(size)) return;
    throw invalidParameter('size', "Invalid 'size': expected '<width>x<height>', such as '1024x1024', or 'auto'.");
  }
  if (sizes.includes(size)) return;
  const list = sizes.map((allowed) => `'${allowed}'`).join(', ');
  throw invalidParameter('size', `Invalid value for 'size'. Supported values are: ${list}.`);
}
