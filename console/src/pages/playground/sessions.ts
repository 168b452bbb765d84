import { onForget } from '../../api/tab-storage.ts';
import { keepPlayground } from './kept-playground.ts';
import { makePlayground, type Playground } from './make-playground.ts';

/** The playground of who is signed in, and what ends its being kept for a reload. */
let current: { readonly playground: Playground; readonly endKeeping: () => void } | undefined;

/** The playground of who is signed in: another user never sees what the last one wrote. @param user the user's id */
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
