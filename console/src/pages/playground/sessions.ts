import { onForget } from '../../api/tab-storage.ts';
import { keepPlayground } from './kept-playground.ts';
import { makePlayground, type Playground } from './make-playground.ts';

/** The signed-in user's playground, and a function that stops storing it for a reload. */
let current: { readonly playground: Playground; readonly endKeeping: () => void } | undefined;

/**
 * The signed-in user's playground: another user never sees what the previous one wrote.
 * @param user the user's id
 */
export function playgroundOf(user: string): Playground {
  if (current?.playground.user === user) return current.playground;
  leave();
  const playground = makePlayground(user);
  current = { playground, endKeeping: keepPlayground(playground) };
  return playground;
}

function leave(): void {
  current?.endKeeping();
  current?.playground.chat.stop();
  current = undefined;
}

onForget(leave);
