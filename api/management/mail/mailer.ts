import type { Transporter } from 'nodemailer';
import type { MailSettings } from '../../../shared/config/account-settings.ts';
import { isLoopback } from '../../../shared/config/ingress-settings.ts';
import type { Logger } from '../../../shared/runtime/log.ts';

/** A mail as it is written here: plain text, to one address. */
export interface Mail {
  readonly to: string;
  readonly subject: string;
  readonly text: string;
}

/** How long the server may take to connect, to greet and between two answers. */
const patienceMs = 15_000;
/** Mails that may be on their way; further ones are dropped while a server does not keep up. */
const maxPending = 50;

/**
 * Sends mails over SMTP, in the background: whether an address is known shows neither in what a caller is answered nor in how
 * long that takes. What is in a mail may sign somebody in, so none is logged, nor to whom it goes.
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

  /** Begins to send a mail. A failure is logged. */
  send(mail: Mail): void {
    if (this.#pending.size >= maxPending) {
      this.#log.warn('mail dropped: the mail server is too slow');
      return;
    }
    const sending = this.#send(mail).catch((error: { code?: string; responseCode?: number }) => {
      // Its message repeats addresses.
      this.#log.warn({ code: error.code, smtp: error.responseCode }, 'sending mail failed');
    });
    this.#pending.add(sending);
    void sending.then(() => this.#pending.delete(sending));
  }

  /** Resolves when all that was begun is sent, or has failed; each within its own time. */
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
    // Links that sign somebody in do not travel in clear; `?requireTLS=false` in the URL takes that back.
    requireTLS: url.startsWith('smtp:') && !isLoopback(new URL(url).hostname),
    connectionTimeout: patienceMs,
    greetingTimeout: patienceMs,
    socketTimeout: patienceMs,
    disableFileAccess: true,
    disableUrlAccess: true,
  });
}
