import type { Middleware } from 'koa';
import type { Services } from './services.ts';
import type { State } from './state.ts';

/** Stand-in until start-page.ts lands. */
export function showStartPage(services: Services): Middleware<State> {
  return (ctx) => {
    ctx.body = `Sluice ${services.baseUrl}`;
  };
}
