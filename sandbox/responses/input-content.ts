import type { ContentPart } from '../chat/chat-message.ts';
import { isAbsent, isObject, type JsonObject } from '../json-value.ts';
import { invalidParameter, type WireError } from '../wire-error.ts';
import { requiredText, unsupportedValue, wrongType } from './request-members.ts';

type PartReader = (part: JsonObject, place: string) => ContentPart;

const inputReaders: Readonly<Record<string, PartReader>> = {
  input_text: (part, place) => ({ type: 'text', text: requiredText(part, 'text', place) }),
  input_image: readImage,
  input_file: readFile,
};

const outputReaders: Readonly<Record<string, PartReader>> = {
  output_text: (part, place) => ({ type: 'text', text: requiredText(part, 'text', place) }),
  refusal: (part, place) => ({ type: 'refusal', refusal: requiredText(part, 'refusal', place) }),
};

/**
 * The content of a message, or the output of a tool, as the sandbox's chat knows it.
 * @param written `output` for what a model wrote, `input` for everything it is shown.
 * @throws WireError 400 naming the place, like `input[2].content[0].text`.
 */
export function readContent(content: unknown, written: 'input' | 'output', place: string): string | ContentPart[] {
  if (typeof content === 'string') return content;
  if (!Array.isArray(content)) throw wrongType(place, 'a string or an array of content parts');
  const readers = written === 'input' ? inputReaders : outputReaders;
  return content.map((part, index) => {
    const at = `${place}[${index}]`;
    if (!isObject(part)) throw wrongType(at, 'an object');
    const type = String(part.type);
    const read = Object.hasOwn(readers, type) ? readers[type] : undefined;
    if (read === undefined) throw unsupportedValue(at, type, Object.keys(readers));
    return read(part, at);
  });
}

function readImage(part: JsonObject, place: string): ContentPart {
  if (!isAbsent(part.file_id)) throw unknownFile(part.file_id, `${place}.file_id`);
  return { type: 'image_url', image_url: { url: requiredText(part, 'image_url', place) } };
}

function readFile(part: JsonObject, place: string): ContentPart {
  if (!isAbsent(part.file_id)) throw unknownFile(part.file_id, `${place}.file_id`);
  if (isAbsent(part.file_data) && isAbsent(part.file_url)) {
    throw invalidParameter(place, `'${place}' must have one of 'file_data', 'file_url' and 'file_id'.`);
  }
  const data = requiredText(part, isAbsent(part.file_data) ? 'file_url' : 'file_data', place);
  const filename = isAbsent(part.filename) ? undefined : requiredText(part, 'filename', place);
  return {
    type: 'file',
    file: { file_data: data, filename: filename ?? (isAbsent(part.file_url) ? undefined : data) },
  };
}

/** The sandbox keeps no files. */
function unknownFile(id: unknown, param: string): WireError {
  return invalidParameter(param, `File '${String(id).slice(0, 200)}' not found.`);
}
