import { endpoints } from '../endpoints/endpoints.ts';
import type { Operations } from './operation.ts';
import type { HeaderName } from './request-schemas.ts';

const headers: readonly HeaderName[] = [
  'Prefer',
  'Idempotency-Key',
  'X-Sluice-On-Disconnect',
  'X-Sluice-Cache',
  'X-Sluice-Single-Flight',
  'X-Sluice-Start-By',
  'X-Sluice-Priority',
  'X-Stainless-Timeout',
  'X-Stainless-Retry-Count',
  'X-Client-Request-Id',
];

/** The operations that make jobs, by their routes: those of the endpoints. */
export const makerOperations: Operations = Object.fromEntries(
  endpoints.map(({ path, operation }) => [`POST ${path}`, { ...operation, guard: 'key', headers, makesJob: true }]),
);
