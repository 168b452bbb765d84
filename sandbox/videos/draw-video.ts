import { Canvas } from '../images/canvas.ts';
import { type Painting, type Picture, paintPicture, SMALL, type Source, TITLE } from '../images/draw-image.ts';

/** The content of a video: the same clip always gives the same video. */
export interface Clip {
  model: string;
  prompt: string;
  width: number;
  height: number;
  seconds: number;
  /** The source image. */
  reference: Source | undefined;
  isRemix: boolean;
}

/** Low, as every frame costs encoding time, and only a bar moves. */
export const FRAMES_PER_SECOND = 1;

const SHEET_COLUMNS = 4;

/** The frames of the video, each as YUV planes; the bar at the bottom is full in the last one. */
export function* drawFrames(clip: Clip): Generator<Uint8Array> {
  const painting = paintPicture(pictureOf(clip, clip.width, clip.height));
  const frames = clip.seconds * FRAMES_PER_SECOND;
  for (let frame = 1; frame <= frames; frame += 1) {
    drawBar(painting, frame / frames);
    yield painting.canvas.toYuv(painting.palette);
  }
}

/** The middle frame, as WebP of the video's size. */
export function drawThumbnail(clip: Clip): Buffer {
  const painting = paintPicture(pictureOf(clip, clip.width, clip.height));
  drawBar(painting, 0.5);
  return painting.canvas.toWebp(painting.palette, false);
}

/** A small frame per second, four per row, as WebP of the video's width. */
export function drawSpritesheet(clip: Clip): Buffer {
  const width = clip.width / SHEET_COLUMNS;
  const height = clip.height / SHEET_COLUMNS;
  const painting = paintPicture(pictureOf(clip, width, height));
  const sheet = new Canvas(clip.width, height * Math.ceil(clip.seconds / SHEET_COLUMNS));
  for (let second = 0; second < clip.seconds; second += 1) {
    drawBar(painting, (second + 1) / clip.seconds);
    sheet.paste(painting.canvas, (second % SHEET_COLUMNS) * width, Math.floor(second / SHEET_COLUMNS) * height);
  }
  return sheet.toWebp(painting.palette, false);
}

function pictureOf(clip: Clip, width: number, height: number): Picture {
  const { model, prompt, seconds, reference, isRemix } = clip;
  return {
    width,
    height,
    title: isRemix ? 'SANDBOX REMIX' : 'SANDBOX VIDEO',
    text: prompt,
    sources: reference === undefined ? [] : [reference],
    footer: `${model} ${clip.width}x${clip.height} ${seconds} s`,
    seed: `${prompt} ${reference?.sha256 ?? ''}`,
    transparent: false,
  };
}

/**
 * Draws the progress bar.
 * @param part the share of the video shown so far, from 0 to 1.
 */
function drawBar({ canvas, frame }: Painting, part: number): void {
  const width = canvas.width - 4 * frame;
  const top = canvas.height - 2 * frame;
  const shown = Math.round(width * part);
  canvas.fill(2 * frame, top, shown, frame, TITLE);
  canvas.fill(2 * frame + shown, top, width - shown, frame, SMALL);
}
