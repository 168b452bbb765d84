/** The seed to be replayed, if one is named; else every campaign draws another. */
export function campaignSeed(): number | undefined {
  const named = process.env.SLUICE_CAMPAIGN_SEED;
  return named === undefined ? undefined : Number(named);
}
