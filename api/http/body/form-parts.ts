/** The parsed headers of a form part. */
export interface PartHead {
  /** Name of the field, as sent. */
  readonly name: string;
  /** The file's name without folders, which may be empty. Undefined if the part is not a file. */
  readonly fileName: string | undefined;
  /** The media type without parameters, if the part has one. */
  readonly type: string | undefined;
}

/** Headers of a part: values by name in lower case; bytes as Latin-1. */
export type PartHeaders = Readonly<Record<string, readonly string[] | undefined>>;

/** A parameter of a header: `; name=token`, or `; name="quoted \" string"`. */
const parameter = /\s*;\s*([\w!#$%&'*+.^`|~-]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^;\s"]*))/y;

/** Returns the boundary of a `multipart/form-data` Content-Type. */
export function readBoundary(contentType: string): string | undefined {
  const boundary = readParameters(contentType.slice(contentType.search(/;|$/)))?.get('boundary');
  return boundary === '' || (boundary?.length ?? 0) > 200 ? undefined : boundary;
}

/** Parses a part's headers. Returns undefined if they are not of a form part (RFC 7578): then the whole body is malformed. */
export function readPartHead(headers: PartHeaders): PartHead | undefined {
  const disposition = headers['content-disposition']?.[0] ?? '';
  const kind = /^\s*form-data\s*(?=;)/i.exec(disposition);
  const parameters = kind === null ? undefined : readParameters(disposition.slice(kind[0].length));
  const name = parameters?.get('name');
  if (parameters === undefined || name === undefined || name === '') return undefined;
  const type = /^\s*([^\s;]+)/.exec(headers['content-type']?.[0] ?? '')?.[1]?.toLowerCase();
  const given = fileNameOf(parameters);
  const isFile = given !== undefined || type === 'application/octet-stream';
  return {
    name: decodeUtf8(name),
    fileName: isFile ? (given ?? '').replace(/^.*[/\\]/s, '') : undefined,
    type,
  };
}

/** Returns parameters by name in lower case, or undefined when the text is malformed. */
function readParameters(text: string): Map<string, string> | undefined {
  const found = new Map<string, string>();
  parameter.lastIndex = 0;
  let end = 0;
  for (let match = parameter.exec(text); match !== null; match = parameter.exec(text)) {
    const [, name = '', quoted, token = ''] = match;
    // Only these two are escapes; other backslashes belong to the path that old browsers send.
    found.set(name.toLowerCase(), quoted === undefined ? token : quoted.replace(/\\(["\\])/g, '$1'));
    end = parameter.lastIndex;
  }
  return /^[\s;]*$/.test(text.slice(end)) ? found : undefined;
}

/** The extended form, which has a charset (RFC 5987), takes precedence over the plain one. */
function fileNameOf(parameters: ReadonlyMap<string, string>): string | undefined {
  const extended = /^(utf-8|iso-8859-1)'[^']*'(.*)$/is.exec(parameters.get('filename*') ?? '');
  if (extended !== null) {
    const [, charset = '', encoded = ''] = extended;
    const bytes = encoded.replace(/%([0-9a-f]{2})/gi, (_, code) => String.fromCharCode(Number.parseInt(code, 16)));
    return charset.toLowerCase() === 'utf-8' ? decodeUtf8(bytes) : bytes;
  }
  const plain = parameters.get('filename');
  return plain === undefined ? undefined : decodeUtf8(plain);
}

/** Decodes a text whose characters are bytes of UTF-8. */
function decodeUtf8(bytes: string): string {
  return Buffer.from(bytes, 'latin1').toString('utf8');
}
