import { ApiError } from '../../shared/errors.ts';

/** As much of an id as an error repeats: it is the caller's text. */
const maxId = 200;

/** An id as an error shows it. */
export function shownId(id: string): string {
  return id.length <= maxId ? id : `${id.slice(0, maxId)}…`;
}

/** The 404 for a model that is not offered, in OpenAI's words. @param hint what follows */
export function modelNotFound(id: string, hint = ''): ApiError {
  const message = `The model \`${shownId(id)}\` does not exist or you do not have access to it.${hint}`;
  return new ApiError('model_not_found', message, { param: 'model' });
}
