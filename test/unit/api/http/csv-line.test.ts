import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { csvLine } from '../../../../api/http/csv-line.ts';

/** A line's cells, as a spreadsheet that splits at semicolons reads them: only a quote at a cell's begin has a meaning. */
function splitAtSemicolons(line: string): string[] {
  return line.split(/[;\r\n\t]/).map((cell) => cell.trimStart().replace(/^"+/, ''));
}

describe('lines of CSV files', () => {
  test('a text that would be a formula is prefixed, in each script, and every other one stays as it is', () => {
    for (const sign of ['=', '+', '-', '@', '＝', '＋', '－', '＠']) {
      assert.equal(csvLine([`${sign}1+1`]), `'${sign}1+1\r\n`);
      assert.match(csvLine([` \n${sign}1`]), /^"' \n'?.1"\r\n$/);
    }
    const harmless = ['a=b', 'x;y', 'sk-1', 'one@example.com', '; 5', 'ä－b'];
    assert.equal(csvLine([...harmless, -5, null]), `${harmless.join(',')},-5,\r\n`);
  });

  test('a formula behind a semicolon, a tab or a new line is none where files are split there', () => {
    const command = '=cmd|calc!A1';
    for (const name of [
      `a;${command};`,
      `a; ${command}`,
      `a;"${command}"`,
      `a\t${command}`,
      `a\n${command}`,
      'a;;-2+3;',
    ]) {
      const line = csvLine(['job_1', name, '{"a":"b"}']);
      for (const cell of splitAtSemicolons(line)) assert.doesNotMatch(cell, /^[=+\-@]/, line);
    }
  });
});
