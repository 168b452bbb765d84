import { ApiError } from '../../shared/errors.ts';
import type { KeyCheckOutcome } from '../../shared/queue/worker-registry.ts';
import { workerKeys } from '../../shared/redis/keys.ts';
import type { WorkerContext } from '../worker-context.ts';
import type { Account } from './account.ts';
import { refusalSentence } from './key-refusal.ts';
import type { VendorPool } from './vendor-pool.ts';

/** Timeout for a vendor's check of a key, in ms. */
const deadlineMs = 10_000;
/** Interval (ms) in which no other worker checks the same key: the workers of one gateway start together. */
const claimMs = 30_000;

type CheckContext = Pick<WorkerContext, 'redis' | 'log'> & { readonly vendors: VendorPool };

/**
 * Checks each key once, of those that were not checked before, by a call that costs nothing, and logs the result for the operator.
 * The keys of one vendor are checked one after the other. @param signal stops the checks
 */
export async function checkKeys(context: CheckContext, signal: AbortSignal): Promise<void> {
  await Promise.all(
    context.vendors.unchecked().map(async (accounts) => {
      for (const account of accounts) if (!signal.aborted) await checkKey(context, account, signal);
    }),
  );
}

async function checkKey({ vendors, redis, log }: CheckContext, account: Account, signal: AbortSignal): Promise<void> {
  const { vendor, id } = account;
  if (vendor.checkKey === undefined) return;
  const about = { vendor: vendor.name, key: id };
  try {
    if ((await redis.set(workerKeys.keyCheck(vendor.name, id), '1', 'PX', claimMs, 'NX')) === null) return;
    await vendor.checkKey({
      signal: AbortSignal.any([signal, AbortSignal.timeout(deadlineMs)]),
      silenceMs: deadlineMs,
    });
    vendors.noteCheck(account, 'accepted');
    log.info(about, 'vendor accepted the API key');
  } catch (thrown) {
    if (signal.aborted) return;
    const error = ApiError.from(thrown);
    const outcome = outcomeOf(error);
    vendors.noteCheck(account, outcome);
    const { vendorStatus: status } = error;
    if (outcome === 'unclear' || status === undefined) {
      log.info({ ...about, status, code: error.code }, 'vendor key check was inconclusive');
      return;
    }
    const refusal = { status, message: refusalSentence(error), at: Date.now(), model: undefined };
    if (!vendors.refuse(account, refusal)) return;
    log.warn({ ...about, status, said: refusal.message }, 'vendor rejected the API key: check its setting');
  }
}

/** A 403 may mean that a key has few rights and lacks this one; Google reports an invalid key by a 400 that is read as 403. */
function outcomeOf({ vendorStatus, cause }: ApiError): KeyCheckOutcome {
  const isInvalid = vendorStatus === 403 && cause instanceof Error && cause.message.endsWith('(INVALID_ARGUMENT)');
  return vendorStatus === 401 || isInvalid ? 'refused' : 'unclear';
}
