import { z } from 'zod';
import { imageReference, upload } from './image.ts';

const prompt = z.string().min(1).max(32_000);

const options = {
  // The operator may configure a default model.
  model: z.string().min(1).max(256).nullish(),
  prompt,
  // Allowed sizes and lengths depend on the model: they are validated against its row.
  size: z.string().optional(),
  seconds: z.union([z.string(), z.int().min(1)]).optional(),
  // Progress is polled, or followed through the job's events.
  stream: z.literal(false).nullish(),
};

/** OpenAI's `CreateVideoJsonBody`; unknown fields are kept. */
export const videoRequest = z.looseObject({ ...options, input_reference: imageReference.nullish() });

/** The fields of a video form, with the upload in `input_reference`. */
export const videoForm = z.looseObject({ ...options, input_reference: upload.optional() });

/** OpenAI's `CreateVideoRemixBody`; unknown fields are kept. */
export const videoRemixRequest = z.looseObject({ prompt });
