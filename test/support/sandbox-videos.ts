import assert from 'node:assert/strict';
import OpenAI from 'openai';
import type { RunningSandbox } from '../../sandbox/server.ts';

type CreateParameters = OpenAI.VideoCreateParams;

/** What a test asks of the sandbox's videos; see `VideoOptions` and `FaultOptions` in `sandbox/`. */
export interface SandboxWish {
  first_token_ms?: number;
  fault?: Record<string, unknown>;
  video?: Record<string, unknown>;
}

/** The official client, which never asks twice. */
export function clientOf(sandbox: RunningSandbox): OpenAI {
  return new OpenAI({ apiKey: 'none', baseURL: `${sandbox.url}/v1`, maxRetries: 0 });
}

/** Creates a video with the official client, which sends a form: the wish goes as JSON text. */
export function createVideo(
  client: OpenAI,
  { sandbox, user, ...parameters }: Partial<CreateParameters> & { sandbox?: SandboxWish; user?: string } = {},
): Promise<OpenAI.Video> {
  const wish = sandbox === undefined ? {} : { sandbox: JSON.stringify(sandbox) };
  const about = user === undefined ? {} : { user };
  return client.videos.create({
    ...{ model: 'sandbox-video', prompt: 'A sea otter' },
    ...parameters,
    ...wish,
    ...about,
  } as CreateParameters);
}

/** Asks for the video until it has ended; answers every state that was seen, the last one too. */
export async function pollToEnd(client: OpenAI, id: string): Promise<OpenAI.Video[]> {
  for (const seen: OpenAI.Video[] = []; ; ) {
    const video = await client.videos.retrieve(id);
    seen.push(video);
    if (video.status === 'completed' || video.status === 'failed') return seen;
  }
}

/** Creates a video that is complete at once. */
export async function createCompleted(
  client: OpenAI,
  { sandbox = {}, ...more }: Parameters<typeof createVideo>[1] = {},
): Promise<OpenAI.Video> {
  const video = await createVideo(client, {
    ...more,
    sandbox: { ...sandbox, video: { duration_ms: 0, ...sandbox.video } },
  });
  assert.equal(video.status, 'completed');
  return video;
}
