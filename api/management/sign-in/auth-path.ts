/** Where better-auth's own routes lie. */
export const authPath = '/console/api/auth';

/** The header by which better-auth is told who called; the route that hands it requests sets it, never a caller. */
export const clientAddressHeader = 'x-sluice-client-address';
