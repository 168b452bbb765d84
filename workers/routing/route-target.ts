import type { RoutedModel } from '../../shared/catalogue/catalogue.ts';
import type { Account } from './vendor-pool.ts';

/** The target of one call. */
export interface RouteTarget {
  readonly account: Account;
  readonly routed: RoutedModel;
}
