import assert from 'node:assert/strict';
import { EventEmitter, once } from 'node:events';
import { mkdtemp, readdir, readlink, rm } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import Koa from 'koa';
import { readForm } from '../../api/http/body/form-body.ts';
import { isForm } from '../../api/http/body/read-body.ts';
import { type AccountBlobs, Blobs } from '../../shared/blobs/blobs.ts';
import type { UploadRecord } from '../../shared/blobs/upload.ts';
import { ApiError } from '../../shared/errors.ts';
import { longKeepAliveMs } from './long-keep-alive.ts';

export interface FormAnswer {
  status: number;
  fields: Record<string, string[]>;
  files: UploadRecord[];
  hash: string;
  error?: { code: string; message: string };
}

/** A server without a gateway, which reads forms with `readForm` and answers what it has read. */
export class FormServer {
  readonly bounds = { size: 60_000_000, silenceMs: 30_000 };
  /** `end` is emitted with what each request ended with on the server's side. */
  readonly requests = new EventEmitter();
  readonly http: Server;
  readonly blobs: AccountBlobs;
  /** What the server stores into; a test may put something else in its place. */
  storage: AccountBlobs;
  readonly #folder: string;

  private constructor(folder: string, blobs: AccountBlobs) {
    this.#folder = folder;
    this.blobs = blobs;
    this.storage = blobs;
    const app = new Koa();
    app.silent = true;
    app.use((ctx) => this.#answer(ctx));
    this.http = createServer({ keepAliveTimeout: longKeepAliveMs }, app.callback());
  }

  static async start(): Promise<FormServer> {
    const folder = await mkdtemp(join(tmpdir(), 'sluice-test-forms-'));
    const made = new FormServer(folder, (await Blobs.open(folder)).of('account'));
    made.http.listen(0, '127.0.0.1');
    await once(made.http, 'listening');
    return made;
  }

  get url(): string {
    return `http://127.0.0.1:${this.#port}/`;
  }

  async close(): Promise<void> {
    this.http.closeAllConnections();
    this.http.close();
    await once(this.http, 'close');
    await rm(this.#folder, { recursive: true });
  }

  async post(body: RequestInit['body'], headers: Record<string, string> = {}): Promise<FormAnswer> {
    const init: RequestInit = { method: 'POST', body: body ?? null, headers };
    if (body instanceof ReadableStream) init.duplex = 'half';
    const response = await fetch(this.url, init);
    return { ...((await response.json()) as FormAnswer), status: response.status };
  }

  /** A connection that has sent this. */
  async open(text: string | Buffer): Promise<Socket> {
    const socket = connect(this.#port, '127.0.0.1');
    await once(socket, 'connect');
    socket.on('error', () => undefined);
    socket.write(text);
    return socket;
  }

  /** The text of an uploaded file, which is removed. */
  async take({ blob }: UploadRecord): Promise<string> {
    const text = await this.blobs.text(blob);
    await this.blobs.delete(blob);
    return text;
  }

  async storedFiles(): Promise<string[]> {
    const entries = await readdir(join(this.#folder, 'blobs'), { recursive: true, withFileTypes: true });
    return entries.flatMap((entry) => (entry.isFile() && entry.name !== 'identity' ? [entry.name] : []));
  }

  /** Those that this process has open. */
  async openFiles(): Promise<string[]> {
    const names = await readdir('/proc/self/fd');
    const paths = await Promise.all(names.map((name) => readlink(`/proc/self/fd/${name}`).catch(() => '')));
    return paths.filter((path) => path.startsWith(this.#folder));
  }

  /** Stores into its folder again. Of no refused form anything stays behind; tests of good forms remove what they stored. */
  async assertNothingLeft(): Promise<void> {
    this.storage = this.blobs;
    assert.deepEqual(await this.storedFiles(), [], 'a blob stayed behind');
    assert.deepEqual(await this.openFiles(), [], 'a file stayed open');
  }

  get #port(): number {
    return (this.http.address() as AddressInfo).port;
  }

  async #answer(ctx: Koa.Context): Promise<void> {
    try {
      assert.ok(isForm(ctx as never), 'a form');
      const { form, hash } = await readForm(ctx as never, this.storage, true, this.bounds);
      ctx.body = { fields: Object.fromEntries(form.fields), files: form.files.map(({ record }) => record), hash };
      this.requests.emit('end', 'read');
    } catch (thrown) {
      const error = ApiError.from(thrown);
      ctx.status = error.status;
      ctx.body = error.toWire();
      this.requests.emit('end', error.code);
    }
  }
}

/** The status of an answer and its error's code. */
export function refused({ status, error }: FormAnswer): [number, string | undefined] {
  return [status, error?.code];
}

/** The start of a request with a form of the boundary `b`; what says its length follows. */
export const formHead = 'POST / HTTP/1.1\r\nhost: a\r\ncontent-type: multipart/form-data; boundary=b\r\n';

/** The start of a form, up to the bytes of its file. */
export const filePart = '--b\r\ncontent-disposition: form-data; name="image"; filename="a.png"\r\n\r\n';
