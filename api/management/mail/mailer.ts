import type { Transporter } from 'nodemailer';
import type { MailSettings } from '../../../shared/config/account-settings.ts';
import { isLoopback } from '../../../shared/config/ingress-settings.ts';
import type { Logger } from '../../../shared/runtime/log.ts';

/** A mail: plain text, to one address. */
export interface Mail {
  readonly to: string;
  readonly subject: string;
  readonly text: string;
}

/** Timeout for the server to connect, to greet and between two responses. */
const patienceMs = 15_000;
/** Pending mails beyond which further ones are dropped, while a server does not keep up. */
const maxPending = 50;

/**
 * Sends mails over SMTP in the background, so that neither a response nor its duration reveals whether an address is known.
 * A mail may contain a sign-in link, so neither mails nor recipients are logged.
 */
export class Mailer {
  readonly #settings: MailSettings;
  readonly #log: Logger;
  readonly #pending = new Set<Promise<void>>();
  #transport: Promise<Transporter> | undefined;

  constructor(settings: MailSettings, log: Logger) {
    this.#settings = settings;
    this.#log = log;
  }

  /** Starts to send a mail. A failure is logged. */
  send(mail: Mail): void {
    if (this.#pending.size >= maxPending) {
      this.#log.warn('mail dropped: the mail server is too slow');
      return;
    }
    const sending = this.#send(mail).catch((error: { code?: string; responseCode?: number }) => {
      // Its message contains addresses.
      this.#log.warn({ code: error.code, smtp: error.responseCode }, 'sending mail failed');
    });
    this.#pending.add(sending);
    void sending.then(() => this.#pending.delete(sending));
  }

  /** Resolves when all pending mails are sent or have failed, each within its timeout. */
  async close(): Promise<void> {
    await Promise.all(this.#pending);
    (await this.#transport)?.close();
  }

  async #send(mail: Mail): Promise<void> {
    this.#transport ??= connect(this.#settings);
    await (await this.#transport).sendMail({ from: this.#settings.from, ...mail });
  }
}

/** Loaded with the first mail: most processes send none. */
async function connect({ url }: MailSettings): Promise<Transporter> {
  const { createTransport } = await import('nodemailer');
  return createTransport({
    url,
    // Sign-in links are not sent in clear text; `?requireTLS=false` in the URL allows it.
    requireTLS: url.startsWith('smtp:') && !isLoopback(new URL(url).hostname),
    connectionTimeout: patienceMs,
    greetingTimeout: patienceMs,
    socketTimeout: patienceMs,
    disableFileAccess: true,
    disableUrlAccess: true,
  });
}
