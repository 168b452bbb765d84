import type { AccountWithMoney } from '../../../shared/accounts/accounts.ts';
import { toDollars } from '../../../shared/money/cost.ts';

/** An account as shown to operators: dollars, and milliseconds since 1970. Amounts are those of the database. */
export function accountObject({ credit, charged, ...account }: AccountWithMoney) {
  return {
    id: account.id,
    object: 'account' as const,
    name: account.name,
    is_unlimited: account.isUnlimited,
    suspended: account.suspendedAt !== undefined,
    suspended_at: account.suspendedAt ?? null,
    queue_weight: account.queueWeight,
    queue_by_key: account.queueByKey,
    max_priority: account.maxPriority,
    created_at: account.createdAt,
    credit: toDollars(credit),
    charged: toDollars(charged),
    balance: account.isUnlimited ? null : toDollars(credit - charged),
  };
}
