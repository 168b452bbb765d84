import { Readable } from 'node:stream';
import { extensionOf } from '../shared/blobs/media-types.ts';
import type { Blobs } from '../shared/blobs.ts';
import type { CallFiles } from './vendors/vendor.ts';

/** The files of one call, as blobs. */
export function callFiles(blobs: Blobs): CallFiles {
  return {
    open: (id) => blobs.read(id),
    save: async (content, type) => {
      const stream = content instanceof Uint8Array ? Readable.from([content]) : content;
      const { id, bytes } = await blobs.putStream(stream, { extension: extensionOf(type) });
      return { file: id, type, bytes };
    },
  };
}
