import { createHash } from 'node:crypto';
import { WireError } from '../wire-error.ts';

/**
 * The `encrypted_content` of a reasoning item: always the same text, bound to the item's id, so that an id or a content
 * altered by a gateway is detected.
 */
export function sealReasoning(id: string, text: string): string {
  const payload = Buffer.from(JSON.stringify([id, text])).toString('base64url');
  return `${payload}.${checksum(payload)}`;
}

/**
 * Verifies a sealed content.
 * @param id of its item; undefined if the item has none, as some clients send it.
 * @throws WireError 400 `invalid_encrypted_content` for a content not sealed here, or not for that id.
 */
export function verifySealed(content: string, id: string | undefined): void {
  const mark = content.lastIndexOf('.');
  const payload = content.slice(0, Math.max(0, mark));
  if (mark < 0 || content.slice(mark + 1) !== checksum(payload)) {
    throw refusal(content, id, 'Encrypted content could not be decrypted or parsed.');
  }
  const [sealedFor] = JSON.parse(Buffer.from(payload, 'base64url').toString()) as [string, string];
  if (id !== undefined && id !== sealedFor) {
    throw refusal(content, id, 'Encrypted content item_id did not match the target item id.');
  }
}

function checksum(payload: string): string {
  return createHash('sha256').update(`sandbox reasoning ${payload}`).digest('base64url').slice(0, 22);
}

function refusal(content: string, id: string | undefined, reason: string): WireError {
  const which = id === undefined ? `${content.slice(0, 4)}...${content.slice(-4)}` : `for item ${id.slice(0, 64)}`;
  return new WireError(400, `The encrypted content ${which} could not be verified. Reason: ${reason}`, {
    code: 'invalid_encrypted_content',
  });
}
