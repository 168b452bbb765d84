/** A shorter key (the sandbox's) is no secret, and removing it would garble ordinary text. */
const shortestSecret = 16;

/** Returns what removes a vendor's secrets from a text, also where they are encoded as in a link or are part of base64. */
export function withoutSecrets(secrets: readonly string[]): (text: string) => string {
  const forms = secrets
    .filter(({ length }) => length >= shortestSecret)
    .flatMap((secret) => [secret, encodeURIComponent(secret), ...[0, 1, 2].map((before) => inBase64(secret, before))]);
  return (text) => forms.reduce((rest, form) => rest.replaceAll(form, '[key]'), text);
}

/**
 * A secret as it is part of base64, without the digits that depend on its neighbours too.
 * @param before number of bytes before it, modulo 3: `Bearer ` has 7
 */
function inBase64(secret: string, before: number): string {
  const bytes = Buffer.concat([Buffer.alloc(before), Buffer.from(secret)]);
  const digits = bytes.subarray(0, bytes.length - (bytes.length % 3)).toString('base64');
  return digits.slice(Math.ceil((before * 4) / 3));
}
