import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import type { TestGateway } from '../gateway.ts';
import { typescriptFlags } from '../typescript-flags.ts';
import type { ProbeTask } from './chat-probe.ts';

/** Chat requests from a process that does nothing else. */
export class ChatTimes {
  readonly #child: ChildProcess;
  readonly vendorUrl: string;

  private constructor(child: ChildProcess, port: number) {
    this.#child = child;
    this.vendorUrl = `http://127.0.0.1:${port}/v1`;
  }

  static async start(): Promise<ChatTimes> {
    const file = fileURLToPath(new URL('./chat-probe.ts', import.meta.url));
    const child = fork(file, [], { execArgv: [...typescriptFlags] });
    const [{ port }] = (await once(child, 'message', { signal: AbortSignal.timeout(120_000) })) as [{ port: number }];
    return new ChatTimes(child, port);
  }

  /** Their times (ms), until `work` is done, and of at least so many. Where these are no matter, it may rest after each. */
  async times(gateway: TestGateway, work: Promise<unknown>, least: number, restMs = 0): Promise<number[]> {
    const measured = once(this.#child, 'message');
    this.#child.send({ baseURL: `${gateway.url}/v1`, apiKey: gateway.apiKey, least, restMs } satisfies ProbeTask);
    await work.finally(() => this.#child.send('stop'));
    const [{ times }] = (await measured) as [{ times: number[] }];
    return times;
  }

  stop(): void {
    this.#child.disconnect();
  }
}

/** The time that so large a share (0 to 1) of the times is not above. */
export function percentile(times: number[], share: number): number {
  return times.sort((a, b) => a - b)[Math.min(times.length - 1, Math.floor(times.length * share))] as number;
}
