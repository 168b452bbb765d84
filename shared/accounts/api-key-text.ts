import { hash, randomBytes } from 'node:crypto';

const keyStart = 'sk-sluice-';
const generatedPattern = /^sk-sluice-[A-Za-z0-9_-]{43}$/;

/** SHA-256 of the whole key, hexadecimal: the only form in which a key is stored or looked up. */
export function hashApiKey(key: string): string {
  return hash('sha256', key);
}

/** The text of a new key: 256 random bits. */
export function newApiKeyText(): string {
  return keyStart + randomBytes(32).toString('base64url');
}

/** The stored part of a key's text. The first characters of a user-chosen key may be much of its secret. */
export function textColumns(text: string): { hash: string; prefix: string } {
  return { hash: hashApiKey(text), prefix: text.slice(0, generatedPattern.test(text) ? keyStart.length + 6 : 4) };
}
