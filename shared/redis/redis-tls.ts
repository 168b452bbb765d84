import { readFileSync } from 'node:fs';
import { isIP } from 'node:net';
import { type ConnectionOptions, createSecureContext, type SecureContext } from 'node:tls';
import { ConfigError } from '../config/config-error.ts';
import type { RedisTlsSettings } from '../config/redis-settings.ts';
import type { Logger } from '../runtime/log.ts';
import type { RedisNode } from './redis-address.ts';

/**
 * Makes the TLS options of connections to Redis, to one node or to several. Certificates are always verified.
 * @throws ConfigError if a file of the settings cannot be used.
 */
export function redisTls(settings: RedisTlsSettings, log: Logger): (node?: RedisNode) => ConnectionOptions {
  const hasFiles = settings.caFile !== undefined || settings.certFile !== undefined;
  const certificates = hasFiles ? new CertificateFiles(settings, log) : undefined;
  return (node) => {
    // Proxies tell servers apart by this name, which Node sends only if it is given.
    const name = settings.serverName ?? (node !== undefined && isIP(node.host) === 0 ? node.host : undefined);
    const servername = name !== undefined && { servername: name };
    if (certificates === undefined) return { ...servername };
    return {
      ...servername,
      // ioredis copies these options at each connection, and so evaluates the getter.
      get secureContext() {
        return certificates.context();
      },
    };
  };
}

/** Contents of the files by their option; those that are not set are left out. */
type Contents = Partial<Record<'ca' | 'cert' | 'key', string>>;

/** Certificates that may be renewed while the process runs. */
class CertificateFiles {
  readonly #settings: RedisTlsSettings;
  readonly #log: Logger;
  #contents: Contents;
  #context: SecureContext;

  constructor(settings: RedisTlsSettings, log: Logger) {
    this.#settings = settings;
    this.#log = log;
    this.#contents = readContents(settings);
    this.#context = contextOf(this.#contents);
  }

  /**
   * The files as they are now, for a new connection. Files that cannot be used, such as a new certificate whose key has not been
   * written yet, leave the last ones in use: an error here would end the client for good.
   */
  context(): SecureContext {
    try {
      const contents = readContents(this.#settings);
      const { ca, cert, key } = this.#contents;
      if (contents.ca !== ca || contents.cert !== cert || contents.key !== key) {
        this.#context = contextOf(contents);
        this.#contents = contents;
      }
    } catch (error) {
      this.#log.warn({ err: (error as Error).message }, 'the last usable certificates are used for Redis');
    }
    return this.#context;
  }
}

function readContents({ caFile, certFile, keyFile }: RedisTlsSettings): Contents {
  return {
    ...(caFile !== undefined && { ca: read('REDIS_TLS_CA_CERT_FILE', caFile) }),
    ...(certFile !== undefined && { cert: read('REDIS_TLS_CERT_FILE', certFile) }),
    ...(keyFile !== undefined && { key: read('REDIS_TLS_KEY_FILE', keyFile) }),
  };
}

function read(setting: string, path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    throw new ConfigError(`${setting} cannot be read: ${(error as Error).message}.`);
  }
}

function contextOf(contents: Contents): SecureContext {
  try {
    return createSecureContext(contents);
  } catch (error) {
    const names = Object.keys(contents).map(
      (name) => `REDIS_TLS_${name === 'ca' ? 'CA_CERT' : name.toUpperCase()}_FILE`,
    );
    throw new ConfigError(`${names.join(', ')} cannot be used (PEM is expected): ${(error as Error).message}.`);
  }
}
