import type { AccountBandwidth } from '../../shared/fairness/account-bandwidth.ts';
import { RecentAccounts } from '../../shared/runtime/collections.ts';

/** Of accounts that may take as much as they like. */
export const unlimitedBandwidth: Pick<AccountBandwidth, 'accounts' | 'take'> = {
  accounts: new RecentAccounts(),
  take: () => 0,
};
