import assert from 'node:assert/strict';
import { createServer, type Server, type Socket } from 'node:net';
import { eventually } from './eventually.ts';

/** A mail as the server got it. */
export interface ReceivedMail {
  readonly from: string;
  readonly to: string;
  /** Headers and text, as they came. */
  readonly content: string;
}

/** An SMTP server that takes every mail, for one suite. */
export class MailServer {
  readonly mails: ReceivedMail[] = [];
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();

  private constructor() {
    this.#server = createServer((socket) => this.#serve(socket));
  }

  static async start(): Promise<MailServer> {
    const mail = new MailServer();
    await new Promise<void>((resolve) => mail.#server.listen(0, '127.0.0.1', resolve));
    return mail;
  }

  get url(): string {
    const address = this.#server.address();
    assert.ok(address !== null && typeof address === 'object');
    return `smtp://127.0.0.1:${address.port}`;
  }

  /** The mail to an address that comes after `count` others to it. */
  async mailTo(address: string, count = 0): Promise<ReceivedMail> {
    return await eventually(() => {
      const mail = this.mails.filter(({ to }) => to === address)[count];
      assert.ok(mail !== undefined, `no mail to ${address}`);
      return mail;
    });
  }

  async stop(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  #serve(socket: Socket): void {
    this.#sockets.add(socket);
    socket.on('close', () => this.#sockets.delete(socket));
    socket.on('error', () => socket.destroy());
    const say = (line: string): boolean => socket.write(`${line}\r\n`);
    let [from, to, text, isContent] = ['', '', '', false];
    const accept = (line: string): string => {
      say('250 ok');
      return addressOf(line);
    };
    const begin = (): boolean => {
      say('354 go on');
      return true;
    };
    const command = (line: string): void => {
      if (/^(EHLO|HELO)/i.test(line)) say('250 mail.example');
      else if (/^MAIL FROM/i.test(line)) from = accept(line);
      else if (/^RCPT TO/i.test(line)) to = accept(line);
      else if (/^DATA/i.test(line)) isContent = begin();
      else if (/^QUIT/i.test(line)) socket.end('221 bye\r\n');
      else say('250 ok');
    };
    say('220 mail.example ESMTP');
    socket.on('data', (chunk: Buffer) => {
      text += chunk.toString();
      for (let end = endOf(text, isContent); end !== undefined; end = endOf(text, isContent)) {
        const [part, rest] = [text.slice(0, end.at), text.slice(end.next)];
        text = rest;
        if (isContent) {
          // RFC 5321, 4.5.2: a line that begins with a dot has one more on its way.
          this.mails.push({ from, to, content: part.replaceAll('\r\n.', '\r\n') });
          isContent = false;
          say('250 ok');
        } else command(part);
      }
    });
  }
}

/** Where a line, or a mail, ends in what has come so far. */
function endOf(text: string, isContent: boolean): { at: number; next: number } | undefined {
  const mark = isContent ? '\r\n.\r\n' : '\r\n';
  const at = text.indexOf(mark);
  return at === -1 ? undefined : { at, next: at + mark.length };
}

function addressOf(line: string): string {
  return /<([^>]*)>/.exec(line)?.[1] ?? '';
}

/** The link in a mail, whose lines may be broken (quoted-printable). */
export function linkOf({ content }: ReceivedMail): URL {
  const text = content.replaceAll('=\r\n', '').replaceAll('=3D', '=');
  return new URL(/https?:\/\/\S+/.exec(text)?.[0] ?? '');
}
