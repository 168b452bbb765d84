import { writeFileSync } from 'node:fs';
import { Fuzzer } from './fuzzer.ts';

const [requests = '500', seed, route] = process.argv.slice(2);
const report = await Fuzzer.run({
  requests: Number(requests),
  lanes: 8,
  product: process.env.PRODUCT,
  seed: seed ? Number(seed) : undefined,
  only: route ? (s) => s.route.includes(route) : undefined,
});
const distinct = [...new Set(report.findings)].sort((a, b) => a.route.localeCompare(b.route));
writeFileSync('/tmp/w/campaign/tmp/fuzz.json', JSON.stringify({ ...report, findings: distinct }, null, 1));
console.log({ ...report, findings: distinct.length });
for (const f of distinct)
  console.log(
    `${f.times}× ${f.route} | ${f.edits.join(' + ') || '(as it is)'} | ${f.complaint.slice(0, 200)}\n     ${f.stack.split('\n').slice(0, 3).join(' | ').slice(0, 300)}`,
  );
process.exit(0);
