/** Base path of better-auth's routes. */
export const authPath = '/console/api/auth';

/** The header with the caller's address for better-auth. Only the route that passes requests on sets it, never a caller. */
export const clientAddressHeader = 'x-sluice-client-address';
