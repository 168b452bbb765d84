import { anthropic } from './anthropic.ts';
import { assemblyai } from './assemblyai.ts';
import { azure } from './azure.ts';
import { bedrock } from './bedrock.ts';
import { blackForestLabs } from './black-forest-labs.ts';
import { deepgram } from './deepgram.ts';
import { elevenlabs } from './elevenlabs.ts';
import { fal } from './fal.ts';
import { gemini } from './gemini.ts';
import { kling } from './kling.ts';
import { luma } from './luma.ts';
import { openAiCompatible, sandbox } from './openai-compatible.ts';
import { replicate } from './replicate.ts';
import { runway } from './runway.ts';
import { stability } from './stability.ts';
import type { VendorDescription } from './vendor-description.ts';

/** Vendors with a wire of their own, by their dialects; each dialect has an adapter in workers/vendors. */
const ownWires = {
  azure,
  anthropic,
  bedrock,
  gemini,
  'black-forest-labs': blackForestLabs,
  stability,
  fal,
  replicate,
  runway,
  luma,
  kling,
  deepgram,
  elevenlabs,
  assemblyai,
};

/** Whose wire a vendor speaks. */
export type Dialect = 'openai' | keyof typeof ownWires;

/** One vendor. */
export interface VendorRow extends VendorDescription {
  readonly dialect: Dialect;
}

const openAiRow = (vendor: VendorDescription): VendorRow => ({ ...vendor, dialect: 'openai' });

/** Every vendor the gateway knows; the sandbox last, so that lists show it behind the real ones. */
export const vendorRows: readonly VendorRow[] = [
  ...openAiCompatible.map(openAiRow),
  ...Object.entries(ownWires).map(([dialect, vendor]) => ({ ...vendor, dialect: dialect as keyof typeof ownWires })),
  openAiRow(sandbox),
];

const byName = new Map(vendorRows.map((row) => [row.name, row]));

/** The row of a vendor; undefined for a name that the table does not have. */
export function findVendorRow(name: string): VendorRow | undefined {
  return byName.get(name);
}

/** The description of the vendor whose wire a dialect is; undefined for OpenAI's. */
export function ownWire(dialect: Dialect): VendorDescription | undefined {
  return dialect === 'openai' ? undefined : ownWires[dialect];
}
