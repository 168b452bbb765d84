import { z } from 'zod';

const pairs = z
  .string()
  .regex(/^[\w-]+=[^,]*(,[\w-]+=[^,]*)*$/, 'must be name=value pairs with commas between them')
  .transform((list) =>
    Object.fromEntries(
      list.split(',').map((pair) => {
        const at = pair.indexOf('=');
        return [pair.slice(0, at), decoded(pair.slice(at + 1))];
      }),
    ),
  );

function decoded(value: string): string {
  try {
    return decodeURIComponent(value);
  } catch {
    return value;
  }
}

/** The samplers of OpenTelemetry's standard, by name; those of which the share is fixed follow from it. */
const samplers = [
  ...(['traceidratio', 'always_on', 'always_off'] as const),
  ...(['parentbased_traceidratio', 'parentbased_always_on', 'parentbased_always_off'] as const),
] as const;

/** Settings of traces, under OpenTelemetry's own names. */
export const tracingSettings = {
  OTEL_EXPORTER_OTLP_ENDPOINT: z.url({ protocol: /^https?$/, error: 'must be an http or https address' }).optional(),
  OTEL_EXPORTER_OTLP_HEADERS: pairs.optional(),
  OTEL_SERVICE_NAME: z.string().min(1).default('sluice'),
  OTEL_TRACES_SAMPLER: z.enum(samplers).default('traceidratio'),
  OTEL_TRACES_SAMPLER_ARG: z.coerce.number().min(0).max(1).default(1),
};

/** Where traces go, and which requests have one. */
export interface TracingSettings {
  /** Base URL of a collector, without `/v1/traces`. */
  readonly endpoint: string;
  /** Sent with each export; may contain a key. */
  readonly headers: Readonly<Record<string, string>>;
  readonly serviceName: string;
  /** Share of requests that are traced, 0 to 1. */
  readonly ratio: number;
  /** Whether a caller's `traceparent` decides. */
  readonly followsCallers: boolean;
}

/** Reads the settings of traces; undefined if they are off. */
export function readTracingSettings(env: z.output<z.ZodObject<typeof tracingSettings>>): TracingSettings | undefined {
  if (env.OTEL_EXPORTER_OTLP_ENDPOINT === undefined) return undefined;
  const sampler = env.OTEL_TRACES_SAMPLER;
  const ratio = sampler.endsWith('traceidratio') ? env.OTEL_TRACES_SAMPLER_ARG : Number(sampler.endsWith('on'));
  return {
    endpoint: env.OTEL_EXPORTER_OTLP_ENDPOINT,
    headers: env.OTEL_EXPORTER_OTLP_HEADERS ?? {},
    serviceName: env.OTEL_SERVICE_NAME,
    ratio,
    followsCallers: sampler.startsWith('parentbased_'),
  };
}
