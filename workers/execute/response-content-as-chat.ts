import { ApiError } from '../../shared/errors.ts';
import { isObject, type JsonObject } from '../vendors/support/json-object.ts';

/**
 * The content of an item, or the output of a tool, as parts of a chat message. Other fields of an input part (a mark for the
 * prompt cache) pass; annotations and log probabilities of earlier answers do not.
 * @param path of the content: `input[3].content`. @throws ApiError 400 naming the part that a chat cannot hold.
 */
export function chatParts(content: unknown, path: string): readonly JsonObject[] {
  if (!Array.isArray(content)) return [{ type: 'text', text: typeof content === 'string' ? content : '' }];
  if (content.length === 0) throw refused(`Invalid '${path}': expected at least one part.`, path);
  return content.map((part, index) => chatPart(part, `${path}[${index}]`));
}

export function isText(part: JsonObject): boolean {
  return part.type === 'text';
}

/** @throws ApiError 400 naming the part, for anything but text. */
export function requireText(parts: readonly JsonObject[], path: string): void {
  const other = parts.findIndex((part) => !isText(part));
  if (other >= 0) throw refused('Only messages of the role user can hold anything but text.', `${path}[${other}]`);
}

function chatPart(part: unknown, path: string): JsonObject {
  if (!isObject(part)) throw refused('A part of a content must be an object.', path);
  const { type, ...fields } = part;
  switch (type) {
    case 'input_text':
      return { type: 'text', ...fields };
    case 'output_text':
      return { type: 'text', text: fields.text };
    // The model said this too; few vendors except OpenAI support refusals.
    case 'refusal':
      return { type: 'text', text: fields.refusal };
    case 'input_audio':
      return part;
    case 'input_image':
      return imagePart(fields, path);
    case 'input_file':
      return filePart(fields, path);
    default:
      throw refused(`Parts of the type '${String(type).slice(0, 100)}' are not offered for this model.`, path);
  }
}

function imagePart({ image_url: url, file_id: fileId, detail, ...rest }: JsonObject, path: string): JsonObject {
  if (fileId != null) throw noStoredFiles(`${path}.file_id`);
  if (typeof url !== 'string') throw refused("An image needs its 'image_url'.", `${path}.image_url`);
  return { type: 'image_url', image_url: { url, ...(detail != null && { detail }) }, ...rest };
}

function filePart(part: JsonObject, path: string): JsonObject {
  const { file_data: data, file_id: fileId, file_url: url, filename, detail: _detail, ...rest } = part;
  if (fileId != null) throw noStoredFiles(`${path}.file_id`);
  if (url != null) throw refused("This model takes no links to files: send 'file_data'.", `${path}.file_url`);
  if (typeof data !== 'string') throw refused("A file needs its 'file_data'.", `${path}.file_data`);
  return { type: 'file', file: { ...(filename != null && { filename }), file_data: data }, ...rest };
}

function noStoredFiles(path: string): ApiError {
  return refused('Stored files are not offered for this model: send the content itself.', path);
}

function refused(message: string, param: string): ApiError {
  return new ApiError('invalid_request_error', message, { param });
}
