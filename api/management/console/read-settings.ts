import type { Middleware } from 'koa';
import type { Config } from '../../../shared/config/config.ts';
import type { BaseUrls } from '../../http/request-address.ts';
import type { State } from '../../state.ts';

/** `GET /console/api/settings`: what the console needs to know before anybody is signed in. */
export function readSettings({
  config,
  baseUrls,
}: {
  readonly config: Config;
  readonly baseUrls: BaseUrls;
}): Middleware<State> {
  const { isSignUpOpen, mail, oidc, vendors } = config;
  return (ctx) => {
    ctx.state.endpoint = 'console.settings';
    ctx.body = {
      sign_up: isSignUpOpen,
      oidc: oidc === undefined ? null : { name: oidc.name },
      mail: mail !== undefined,
      sandbox: vendors.sandbox !== undefined,
      base_url: baseUrls.of(ctx.req),
    };
  };
}
