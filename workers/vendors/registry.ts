import type { VendorSettings } from '../../shared/config/vendor-settings.ts';
import type { Dialect, VendorRow } from '../../shared/vendors/vendors.ts';
import { createAnthropic } from './anthropic/anthropic.ts';
import { createAssemblyAi } from './assemblyai/assemblyai.ts';
import { createAzure } from './azure/azure.ts';
import { createBedrock } from './bedrock/bedrock.ts';
import { createBlackForestLabs } from './black-forest-labs/black-forest-labs.ts';
import { createDeepgram } from './deepgram/deepgram.ts';
import { createElevenLabs } from './elevenlabs/elevenlabs.ts';
import { createFal } from './fal/fal.ts';
import { createGemini } from './gemini/gemini.ts';
import { createKling } from './kling/kling.ts';
import { createLuma } from './luma/luma.ts';
import { createOpenAiRow } from './openai/row.ts';
import { createReplicate } from './replicate/replicate.ts';
import { createRunway } from './runway/runway.ts';
import { createStability } from './stability/stability.ts';
import type { Vendor } from './vendor.ts';

/** A vendor's address and key, and its differences from others of its dialect. */
interface VendorOptions {
  readonly name: string;
  readonly baseUrl: string;
  readonly apiKey: string;
  readonly row: VendorRow;
}

/** The adapter of each dialect. */
const factories: Record<Dialect, (options: VendorOptions) => Vendor> = {
  anthropic: createAnthropic,
  azure: createAzure,
  assemblyai: createAssemblyAi,
  bedrock: createBedrock,
  'black-forest-labs': createBlackForestLabs,
  deepgram: createDeepgram,
  elevenlabs: createElevenLabs,
  fal: createFal,
  gemini: createGemini,
  kling: createKling,
  luma: createLuma,
  replicate: createReplicate,
  runway: createRunway,
  stability: createStability,
  openai: createOpenAiRow,
};

/** A vendor as reached with one of its keys. The caller closes it. */
export function createVendor(name: string, { row, baseUrl }: VendorSettings, apiKey: string): Vendor {
  return factories[row.dialect]({ name, baseUrl, apiKey, row });
}
