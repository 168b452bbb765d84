import { writeFileSync } from 'node:fs';
import { runCampaign } from './campaign.ts';

const [requests = '200', faults = '10', seed, only] = process.argv.slice(2);
const report = await runCampaign({
  product: process.env.PRODUCT,
  requests: Number(requests),
  clients: 30,
  apis: 2,
  workers: 3,
  faults: Number(faults),
  gapMs: 1000,
  seed: seed ? Number(seed) : undefined,
  only: only ? (only.split(',') as never) : undefined,
});
console.log(JSON.stringify(report.figures, null, 1), 'seed', report.seed);
const by: Record<string, number> = {};
for (const { rule } of report.violations) by[rule] = (by[rule] ?? 0) + 1;
console.log(by);
const seen: Record<string, number> = {};
for (const v of report.violations) {
  seen[v.rule] = (seen[v.rule] ?? 0) + 1;
  if ((seen[v.rule] ?? 0) <= 4) console.log(v.rule, v.detail.slice(0, 1200));
}
writeFileSync('/tmp/w/campaign/tmp/violations.json', JSON.stringify(report, null, 1));
process.exit(0);
