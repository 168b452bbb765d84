/** More tokens, images, characters or seconds than any answer has: a larger amount from a vendor is the vendor's error. */
export const maxAmount = 1_000_000_000;

/**
 * Whether a vendor's usage contains an impossible amount: a token count that is negative, fractional or above `maxAmount`, or a
 * length or quantity that is negative, above it or not a number.
 */
export function hasImpossibleAmount(
  usage: Readonly<Record<string, unknown>> | null,
  quantities: Readonly<Record<string, number | undefined>> = {},
): boolean {
  return !Object.values(quantities).every(isPossible) || (usage !== null && hasImpossibleField(usage));
}

function hasImpossibleField(fields: object): boolean {
  return Object.entries(fields).some(([name, value]) => {
    if (typeof value === 'number') {
      const isCount = name.endsWith('tokens');
      return (isCount && !Number.isInteger(value)) || ((isCount || name === 'seconds') && !isPossible(value));
    }
    // Only details of counts (`prompt_tokens_details`): a vendor's own extras do not matter here.
    return typeof value === 'object' && value !== null && name.includes('token') && hasImpossibleField(value);
  });
}

function isPossible(amount: number | undefined): boolean {
  return amount === undefined || (amount >= 0 && amount <= maxAmount);
}
