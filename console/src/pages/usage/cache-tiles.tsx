import { SimpleGrid } from '@mantine/core';
import type { UsageSums } from '../../api/usage.ts';
import { StatTile } from '../../components/stat-tile.tsx';
import { money } from '../../format/money.ts';
import { count, percent, shortCount } from '../../format/number.ts';

/** What caches saved in all; nothing where they saved nothing. */
export function CacheTiles({ total }: { total: UsageSums }) {
  const { cached_tokens: cached, input_tokens: input, saved, cache_hits: hits } = total;
  if (cached + hits === 0) return null;
  return (
    <SimpleGrid cols={{ base: 1, sm: 3 }} spacing="sm">
      <StatTile
        label="Cached input"
        value={percent(cached, input)}
        hint={`${shortCount(cached)} of ${shortCount(input)} input tokens`}
      />
      <StatTile label="Saved by prompt caches" value={money(saved)} hint="against the plain price of input" />
      <StatTile label="Cached answers" value={count(hits)} hint="besides the requests, at no cost" />
    </SimpleGrid>
  );
}
