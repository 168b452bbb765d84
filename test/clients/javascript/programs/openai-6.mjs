import OpenAI from 'openai-6';
import { runOpenAiCases } from '../openai-cases.mjs';

await runOpenAiCases(OpenAI);
