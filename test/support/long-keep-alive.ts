/**
 * For servers that run in the process of their client, as the api has it: with Node's own 5 s both ends' timers are due at once when
 * that process, or the whole machine, stands still for as long, and the next request goes out on a connection that is being closed.
 */
export const longKeepAliveMs = 65_000;
