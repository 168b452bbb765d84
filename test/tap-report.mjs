// What Node's reports of tests say: TAP, and those for people.

/** Lines of a failed test's details that are kept. */
const linesOfFailure = 40;

/** What a report's summary counts. */
export const outcomes = ['tests', 'suites', 'pass', 'fail', 'cancelled', 'skipped', 'todo'];

/** What is printed for people, without the summary: one of all processes is made of their counts. */
export const withoutSummary = (printed) =>
  printed.replace(new RegExp(`^ℹ (${outcomes.join('|')}|duration_ms) [\\d.]+\\n`, 'gm'), '').trimEnd();

/** The number in a summary line of the TAP report, such as `# skipped 0`. */
export function count(report, name) {
  return Number(new RegExp(`^# ${name} (\\d+)$`, 'm').exec(report)?.[1] ?? Number.NaN);
}

/** The tests that failed in a TAP report, each with where it stands and its error; those that failed by their subtests are left out. */
export function failedTests(report) {
  const found = report.matchAll(/^( *)not ok \d+ - (.*)\n\1 {2}---\n([\s\S]*?)\n\1 {2}\.\.\.$/gm);
  return [...found]
    .filter(([, , , details]) => !details.includes("failureType: 'subtestsFailed'"))
    .map(([, , name, details]) => [`✖ ${name}`, ...details.split('\n').slice(0, linesOfFailure)].join('\n'));
}

/** The tests that a report names last: where a process was that ended in the middle, by a signal say. */
export const lastNamed = (report) => (report.match(/^ *(# Subtest: |(not )?ok \d).*$/gm) ?? []).slice(-8).join('\n');
