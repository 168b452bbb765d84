// What the JavaScript programs share: what they ask, where, and how each tells what came of its cases.
import assert from 'node:assert/strict';
import { z } from 'zod';

export const baseUrl = process.env.SLUICE_BASE_URL;
export const apiKey = process.env.SLUICE_API_KEY;
export const wrongKey = 'sk-sluice-wrong';

/** What the sandbox answers word for word, and the directive that has it do so. */
export const said = 'Hello from Sluice';
export const exactly = `Reply with exactly: ${said}`;

/** A tool that the sandbox calls by this question, and what the tool comes to. */
export const question = 'TOOL:multiply {"one":6,"other":7}';
export const multiplySchema = {
  type: 'object',
  properties: { one: { type: 'number' }, other: { type: 'number' } },
  required: ['one', 'other'],
  additionalProperties: false,
};
export const multiply = {
  name: 'multiply',
  description: 'Multiplies two numbers',
  inputSchema: z.object({ one: z.number(), other: z.number() }),
  execute: ({ one, other }) => String(one * other),
};

/** A form that a structured answer has. */
export const forecast = z.object({ city: z.string(), degrees: z.number(), sky: z.enum(['clear', 'grey']) });
export const forecastSchema = {
  type: 'object',
  properties: {
    city: { type: 'string' },
    degrees: { type: 'number' },
    sky: { type: 'string', enum: ['clear', 'grey'] },
  },
  required: ['city', 'degrees', 'sky'],
  additionalProperties: false,
};

/** Checks a text that came in pieces. */
export function assertSaid(pieces) {
  assert.equal(pieces.join(''), said);
  assert.ok(pieces.filter((piece) => piece !== '').length > 1, 'the text comes in more than one piece');
}

export function assertForecast(answer) {
  assert.deepEqual(forecast.parse(answer), answer);
}

/** Reads a whole stream. */
export async function collect(stream) {
  const events = [];
  for await (const event of stream) events.push(event);
  return events;
}

/** Checks that a call fails, and returns its error. */
export async function failure(call) {
  try {
    await call();
  } catch (error) {
    return error;
  }
  return assert.fail('the call succeeds');
}

/** Runs the cases of one API, one after another: each prints a line of JSON. */
export async function runCases(api, cases) {
  for (const [kind, run] of Object.entries(cases)) {
    const line = { name: `${api}, ${kind}`, ok: true, detail: '' };
    try {
      await run();
    } catch (error) {
      line.ok = false;
      line.detail = String(error?.stack ?? error);
    }
    console.log(JSON.stringify(line));
  }
}
