import type { ContentPart } from '../chat/chat-message.ts';
import { isAbsent, isObject, type JsonObject } from '../json-value.ts';
import { invalidParameter, type WireError } from '../wire-error.ts';
import { requiredText, unsupportedValue, wrongType } from './request-members.ts';

type PartReader = (part: JsonObject, path: string) => ContentPart;

const inputReaders: Readonly<Record<string, PartReader>> = {
  input_text: (part, path) => ({ type: 'text', text: requiredText(part, 'text', path) }),
  input_image: readImage,
  input_file: readFile,
};

const outputReaders: Readonly<Record<string, PartReader>> = {
  output_text: (part, path) => ({ type: 'text', text: requiredText(part, 'text', path) }),
  refusal: (part, path) => ({ type: 'refusal', refusal: requiredText(part, 'refusal', path) }),
};

/**
 * Converts the content of a message, or the output of a tool, to the sandbox chat's format.
 * @param written `output` for a model's output, `input` for everything else.
 * @throws WireError 400 naming the path, like `input[2].content[0].text`.
 */
export function readContent(content: unknown, written: 'input' | 'output', path: string): string | ContentPart[] {
  if (typeof content === 'string') return content;
  if (!Array.isArray(content)) throw wrongType(path, 'a string or an array of content parts');
  const readers = written === 'input' ? inputReaders : outputReaders;
  return content.map((part, index) => {
    const at = `${path}[${index}]`;
    if (!isObject(part)) throw wrongType(at, 'an object');
    const type = String(part.type);
    const read = Object.hasOwn(readers, type) ? readers[type] : undefined;
    if (read === undefined) throw unsupportedValue(at, type, Object.keys(readers));
    return read(part, at);
  });
}

function readImage(part: JsonObject, path: string): ContentPart {
  if (!isAbsent(part.file_id)) throw unknownFile(part.file_id, `${path}.file_id`);
  return { type: 'image_url', image_url: { url: requiredText(part, 'image_url', path) } };
}

function readFile(part: JsonObject, path: string): ContentPart {
  if (!isAbsent(part.file_id)) throw unknownFile(part.file_id, `${path}.file_id`);
  if (isAbsent(part.file_data) && isAbsent(part.file_url)) {
    throw invalidParameter(path, `'${path}' must have one of 'file_data', 'file_url' and 'file_id'.`);
  }
  const data = requiredText(part, isAbsent(part.file_data) ? 'file_url' : 'file_data', path);
  const filename = isAbsent(part.filename) ? undefined : requiredText(part, 'filename', path);
  return {
    type: 'file',
    file: { file_data: data, filename: filename ?? (isAbsent(part.file_url) ? undefined : data) },
  };
}

/** The sandbox stores no files. */
function unknownFile(id: unknown, param: string): WireError {
  return invalidParameter(param, `File '${String(id).slice(0, 200)}' not found.`);
}
