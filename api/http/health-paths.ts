/** Paths of the liveness check: the common ones, and those of other gateways that tools use. */
export const livenessPaths = ['/healthz', '/health', '/health/liveliness', '/health/liveness'] as const;
/** Paths of the readiness check. */
export const readinessPaths = ['/readyz', '/health/readiness'] as const;
