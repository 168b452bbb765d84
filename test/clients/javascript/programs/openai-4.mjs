import OpenAI from 'openai-4';
import { runOpenAiCases } from '../openai-cases.mjs';

await runOpenAiCases(OpenAI);
