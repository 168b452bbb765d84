import { execFile } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);

/** PEM files of a certificate and its key. */
export interface CertificateFiles {
  readonly cert: string;
  readonly key: string;
}

/** A private authority of a suite's own, with what it has certified, in a temporary folder. */
export class TestAuthority {
  readonly #dir: string;
  /** Its own certificate. */
  readonly ca: string;

  private constructor(dir: string) {
    this.#dir = dir;
    this.ca = join(dir, 'ca.crt');
  }

  static async make(): Promise<TestAuthority> {
    const dir = await mkdtemp(join(tmpdir(), 'sluice-test-certificates-'));
    const authority = new TestAuthority(dir);
    await authority.#request('ca', ['-subj', '/CN=Sluice test authority']);
    return authority;
  }

  /** @param names as subject alternative names: `IP:127.0.0.1`, `DNS:localhost`; none for a client */
  async certify(name: string, names: readonly string[] = []): Promise<CertificateFiles> {
    const alternatives = names.length === 0 ? [] : ['-addext', `subjectAltName=${names.join(',')}`];
    const issuer = [
      '-CA',
      this.ca,
      '-CAkey',
      join(this.#dir, 'ca.key'),
      '-addext',
      'basicConstraints=critical,CA:FALSE',
    ];
    await this.#request(name, ['-subj', `/CN=${name}`, ...issuer, ...alternatives]);
    return { cert: join(this.#dir, `${name}.crt`), key: join(this.#dir, `${name}.key`) };
  }

  async #request(name: string, options: readonly string[]): Promise<void> {
    const key = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes'];
    const files = ['-keyout', join(this.#dir, `${name}.key`), '-out', join(this.#dir, `${name}.crt`)];
    await run('openssl', ['req', '-x509', '-days', '2', ...key, ...files, ...options]);
  }

  async remove(): Promise<void> {
    await rm(this.#dir, { recursive: true, force: true });
  }
}
