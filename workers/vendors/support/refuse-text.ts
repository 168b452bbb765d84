import { ApiError } from '../../../shared/errors.ts';

/** Texts of any kind: pages, and errors in JSON or XML. */
const texts = /^text\/|^application\/(?:[\w.-]+\+)?(?:json|xml)$/;

/**
 * Refuses a body that is no media: a proxy's page or an error under a status of success would pass for a file, and be charged.
 * @param type its Content-Type @param media what it should be @throws ApiError
 */
export function refuseText(type: string, media: string): void {
  if (!texts.test(type.split(';')[0]?.trim().toLowerCase() ?? '')) return;
  throw new ApiError('server_error', `The model's vendor answered with text in place of ${media}.`);
}
