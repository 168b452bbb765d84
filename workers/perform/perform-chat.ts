import { methodOf, type Perform } from './performance.ts';

/** A chat completion. */
export const performChat: Perform = ({ vendor, call, sink }) => methodOf(vendor, 'chat')(call, sink);
