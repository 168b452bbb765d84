import { Readable } from 'node:stream';
import type { CallFiles } from '../../../workers/vendors/vendor.ts';

/** A file that a call stored. */
export interface SavedFile {
  readonly type: string;
  readonly content: Buffer;
}

/** Files of one call, kept in memory: those it may open, and those it stored as `file-1`, `file-2`, … */
export function memoryFiles(uploads: Readonly<Record<string, Buffer>> = {}): { files: CallFiles; saved: SavedFile[] } {
  const saved: SavedFile[] = [];
  const files: CallFiles = {
    open: async ({ blob }) => {
      const content = uploads[blob];
      if (content === undefined) throw new Error('no such file');
      return { content: Readable.from([content]), bytes: content.length };
    },
    save: async (content, type) => {
      const chunks: Uint8Array[] = [];
      if (content instanceof Uint8Array) chunks.push(content);
      else for await (const chunk of content) chunks.push(chunk);
      saved.push({ type, content: Buffer.concat(chunks) });
      return { file: `file-${saved.length}`, type, bytes: Buffer.concat(chunks).length };
    },
  };
  return { files, saved };
}
