import { createServer, type IncomingHttpHeaders, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';

/** A span as OTLP/HTTP has it in JSON. */
export interface ReceivedSpan {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId?: string;
  readonly name: string;
  readonly kind: number;
  readonly startTimeUnixNano: string;
  readonly endTimeUnixNano: string;
  readonly attributes: readonly { readonly key: string; readonly value: Readonly<Record<string, unknown>> }[];
  readonly events?: readonly { readonly name: string }[];
  readonly status?: { readonly code?: number };
  /** Role of the process that sent it. */
  readonly role: string;
}

interface Attributes {
  readonly attributes: ReceivedSpan['attributes'];
}

interface Export {
  readonly resourceSpans: readonly {
    readonly resource: Attributes;
    readonly scopeSpans: readonly { readonly spans: readonly Omit<ReceivedSpan, 'role'>[] }[];
  }[];
}

/** The value of an attribute, as text. */
export function attributeOf({ attributes }: Attributes, key: string): string | undefined {
  const value = attributes.find((attribute) => attribute.key === key)?.value;
  return value === undefined ? undefined : String(Object.values(value)[0]);
}

/** An OpenTelemetry collector for tests: keeps the spans that it is sent by OTLP over HTTP. */
export class OtlpReceiver {
  readonly spans: ReceivedSpan[] = [];
  readonly requests: { readonly path: string; readonly headers: IncomingHttpHeaders }[] = [];
  /** All that was received, as text. */
  text = '';
  readonly #server: Server;

  private constructor() {
    this.#server = createServer((request, response) => {
      let body = '';
      request.setEncoding('utf8');
      request.on('data', (part: string) => {
        body += part;
      });
      request.on('end', () => {
        this.requests.push({ path: request.url ?? '', headers: request.headers });
        this.text += body;
        this.#keep(JSON.parse(body) as Export);
        response.setHeader('content-type', 'application/json');
        response.end('{}');
      });
    });
  }

  static async start(): Promise<OtlpReceiver> {
    const receiver = new OtlpReceiver();
    await new Promise<void>((resolve) => receiver.#server.listen(0, '127.0.0.1', resolve));
    return receiver;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  close(): void {
    this.#server.closeAllConnections();
    this.#server.close();
  }

  #keep({ resourceSpans }: Export): void {
    for (const { resource, scopeSpans } of resourceSpans) {
      const role = attributeOf(resource, 'sluice.role') ?? '';
      for (const { spans } of scopeSpans) this.spans.push(...spans.map((span) => ({ ...span, role })));
    }
  }
}
