import type { RoutedModel } from '../../shared/catalogue/catalogue.ts';
import type { Account } from './vendor-pool.ts';

/** Where one call goes. */
export interface RouteTarget {
  readonly account: Account;
  readonly routed: RoutedModel;
}
