/** File extensions by media type of result files. */
const extensions: Readonly<Record<string, string>> = {
  'image/png': 'png',
  'image/jpeg': 'jpg',
  'image/webp': 'webp',
  'image/gif': 'gif',
  'image/avif': 'avif',
  'audio/mpeg': 'mp3',
  'audio/opus': 'opus',
  'audio/ogg': 'ogg',
  'audio/aac': 'aac',
  'audio/flac': 'flac',
  'audio/wav': 'wav',
  'audio/pcm': 'pcm',
  'video/mp4': 'mp4',
  'video/webm': 'webm',
};

const types = new Map(Object.entries(extensions).map(([type, extension]) => [extension, type]));

/** The extension for a media type, without a dot; undefined for a type that results do not have. */
export function extensionOf(type: string): string | undefined {
  return Object.hasOwn(extensions, type) ? extensions[type] : undefined;
}

/** The media type of a file, by its extension. */
export function mediaTypeOf(file: string): string {
  return types.get(file.slice(file.lastIndexOf('.') + 1)) ?? 'application/octet-stream';
}
