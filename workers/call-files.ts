import { Readable } from 'node:stream';
import type { Blobs } from '../shared/blobs.ts';
import type { CallFiles } from './vendors/vendor.ts';

/** File name endings of the media types that results have. */
const extensions: Record<string, string> = {
  'image/png': 'png',
  'image/jpeg': 'jpg',
  'image/webp': 'webp',
  'image/gif': 'gif',
  'audio/mpeg': 'mp3',
  'audio/opus': 'opus',
  'audio/ogg': 'ogg',
  'audio/aac': 'aac',
  'audio/flac': 'flac',
  'audio/wav': 'wav',
  'audio/pcm': 'pcm',
};

/** The files of one call, as blobs. */
export function callFiles(blobs: Blobs): CallFiles {
  return {
    open: (id) => blobs.read(id),
    save: async (content, type) => {
      const stream = content instanceof Uint8Array ? Readable.from([content]) : content;
      const { id, bytes } = await blobs.putStream(stream, { extension: extensions[type] });
      return { file: id, type, bytes };
    },
  };
}
