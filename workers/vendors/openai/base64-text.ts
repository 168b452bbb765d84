/** Characters decoded at a time; four of them are three bytes. */
const pieceLength = 64 * 1024;
const scratch = Buffer.allocUnsafeSlow((pieceLength / 4) * 3);

/**
 * Whether a text, or its bytes, is base64, in either alphabet, and nothing else, so that it can stand in JSON as it is. It is decoded
 * for that: what does not belong to it is left out and makes the result shorter, and decoding takes a tenth of a regular expression's
 * time.
 */
export function isBase64(text: string | Buffer): boolean {
  for (let from = 0; from < text.length; from += pieceLength) {
    const to = Math.min(from + pieceLength, text.length);
    // Of bytes no text is made as a whole: megabytes on the heap would cost a collection of all of it.
    const piece = typeof text === 'string' ? text.slice(from, to) : text.toString('latin1', from, to);
    const padding = to === text.length ? paddingOf(piece) : 0;
    // One character beyond a multiple of four yields no byte, so that nothing would tell it from one that was left out.
    if ((piece.length - padding) % 4 === 1) return false;
    if (scratch.write(piece, 'base64') !== Math.floor(((piece.length - padding) * 3) / 4)) return false;
  }
  return true;
}

function paddingOf(text: string): number {
  if (!text.endsWith('=')) return 0;
  return text.endsWith('==') ? 2 : 1;
}
