import { createHmac } from 'node:crypto';

/** Lifetime of a token, in seconds, and tolerated lag of the vendor's clock. */
const lifeSeconds = 1800;
const skewSeconds = 5;

const algorithm = encode({ alg: 'HS256', typ: 'JWT' });

/**
 * The token derived from a pair of keys at Kling, a JSON Web Token
 * (https://app.klingai.com/global/dev/document-api/apiReference/commonInfo, "API Authentication").
 */
export class KlingToken {
  private readonly accessKey: string;
  private readonly secretKey: string;
  private token = '';
  private renewAt = 0;

  constructor(accessKey: string, secretKey: string) {
    this.accessKey = accessKey;
    this.secretKey = secretKey;
  }

  /** A token that is valid for at least half its lifetime. @param now in ms since 1970 */
  get(now = Date.now()): string {
    if (now >= this.renewAt) {
      const second = Math.floor(now / 1000);
      const claims = encode({ iss: this.accessKey, exp: second + lifeSeconds, nbf: second - skewSeconds });
      const signature = createHmac('sha256', this.secretKey).update(`${algorithm}.${claims}`).digest('base64url');
      this.token = `${algorithm}.${claims}.${signature}`;
      this.renewAt = now + (lifeSeconds * 1000) / 2;
    }
    return this.token;
  }
}

function encode(part: object): string {
  return Buffer.from(JSON.stringify(part)).toString('base64url');
}
