/** Kinds of content. `file` is a document, such as a PDF. */
export const modalities = ['text', 'image', 'audio', 'video', 'file', 'vector'] as const;
