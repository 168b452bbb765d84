/** `Promise.withResolvers`, which Node 20 lacks: what waits for it may begin to after it was resolved. */
export function withResolvers(): { promise: Promise<void>; resolve: () => void } {
  let resolve: () => void = () => undefined;
  const promise = new Promise<void>((done) => {
    resolve = done;
  });
  return { promise, resolve };
}
