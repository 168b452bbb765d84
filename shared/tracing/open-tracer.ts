import type { TracingSettings } from '../config/tracing-settings.ts';
import type { Logger } from '../runtime/log.ts';
import type { Tracer } from './tracer.ts';

/** Opens the process's tracer; undefined if tracing is off. What it needs is loaded only if it is on. */
export async function openTracer(
  settings: TracingSettings | undefined,
  role: string,
  log: Pick<Logger, 'warn'>,
): Promise<Tracer | undefined> {
  if (settings === undefined) return undefined;
  const { OtlpTracer } = await import('./otlp-tracer.ts');
  return new OtlpTracer(settings, role, log);
}
