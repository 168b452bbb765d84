import { parentPort } from 'node:worker_threads';
import { drawSpritesheet, drawThumbnail } from './draw-video.ts';
import { encodeVideo } from './encode-video.ts';
import type { RenderedFile, RenderTask } from './video-renderer.ts';

const makers = { video: encodeVideo, thumbnail: drawThumbnail, spritesheet: drawSpritesheet };

async function render({ variant, clip }: RenderTask): Promise<void> {
  // A copy with its own memory, which can be transferred.
  const bytes = new Uint8Array(await makers[variant](clip));
  parentPort?.postMessage(bytes satisfies RenderedFile, [bytes.buffer]);
}

// A failing task ends the thread: the next one gets a new encoder.
parentPort?.on('message', (task: RenderTask) => void render(task));
