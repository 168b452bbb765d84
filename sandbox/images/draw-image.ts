import { CHARACTER_WIDTH, LINE_HEIGHT, toFontText, wrapText } from './bitmap-font.ts';
import { Canvas } from './canvas.ts';
import type { Colour } from './colour.ts';

/** The content of an image. */
export interface Picture {
  width: number;
  height: number;
  /** A short description of the kind of image. */
  title: string;
  text: string;
  /** Its source images; the first one determines the frame's colour. */
  sources: readonly Source[];
  /** Small print. */
  footer: string;
  /** Varies the colours. */
  seed: string;
  transparent: boolean;
}

/** An input image as shown: its description, and a square in the colour of its hash. */
export interface Source {
  label: string;
  sha256: string;
}

const BACKGROUND = 0;
const TEXT = 1;
/** The colours of the title and of the small print, in every painting's palette. */
export const TITLE = 2;
export const SMALL = 3;
/** Index of the first source colour in the palette. */
const SOURCES = 4;
const sourceColours: readonly Colour[] = Array.from({ length: 12 }, (_, index) => toColour(index * 30, 0.85, 0.6));

/** Square sizes in pixels for the first, second and third partial image; the whole image is sharp. */
const COARSE_SQUARES = [32, 16, 8];

/** The formats of a picture. */
export const imageFormats = ['png', 'webp'] as const;
export type ImageFormat = (typeof imageFormats)[number];

/**
 * Draws the picture; the same picture always gives the same file.
 * @param partial index of the partial image, from 0; undefined: the whole image.
 */
export function drawImage(picture: Picture, format: ImageFormat, partial?: number): Buffer {
  const { canvas, palette } = paintPicture(picture);
  if (partial !== undefined) canvas.coarsen(COARSE_SQUARES[partial] ?? 1);
  return format === 'webp' ? canvas.toWebp(palette, picture.transparent) : canvas.toPng(palette, picture.transparent);
}

/** A picture before it becomes a file. */
export interface Painting {
  canvas: Canvas;
  palette: readonly Colour[];
  /** Pixels: as thick as the frame drawn for sources. Nothing else is drawn this close to an edge, nor next to it. */
  frame: number;
}

/** Paints the picture, leaving room for more along its edges. */
export function paintPicture(picture: Picture): Painting {
  const { width, height, sources } = picture;
  const canvas = new Canvas(width, height);
  const frame = Math.round(Math.min(width, height) / 48);
  const first = sources[0];
  if (first !== undefined) drawFrame(canvas, frame, sourceColour(first));
  drawLines(canvas, layOut(picture, width - 4 * frame, height - 4 * frame), 2 * frame);
  const hue = hash(picture.seed) % 360;
  const palette = [
    toColour(hue, 0.5, 0.22),
    [255, 255, 255],
    toColour(hue, 0.9, 0.75),
    toColour(hue, 0.4, 0.7),
  ] as const;
  return { canvas, palette: [...palette, ...sourceColours], frame };
}

interface Line {
  text: string;
  colour: number;
  /** The colour of the square before it. */
  mark?: number;
}

/** The largest letters with which everything fits; a text too long even for the smallest ends in dots. */
function layOut(picture: Picture, width: number, height: number): { lines: Line[]; scale: number } {
  const text = toFontText(picture.text);
  for (let scale = Math.max(1, Math.floor(width / 160)); ; scale -= 1) {
    const perLine = Math.max(1, Math.floor(width / (CHARACTER_WIDTH * scale)));
    const room = Math.max(1, Math.floor(height / (LINE_HEIGHT * scale)));
    const head = [{ text: picture.title, colour: TITLE }];
    const body = wrapText(text, perLine).map((line) => ({ text: line, colour: TEXT }));
    const tail = [
      ...picture.sources.map((source) => ({ text: source.label, colour: SMALL, mark: sourceColour(source) })),
      ...wrapText(picture.footer, perLine).map((line) => ({ text: line, colour: SMALL })),
    ];
    const left = room - head.length - tail.length;
    const fits = body.length <= left && picture.sources.every(({ label }) => label.length + 2 <= perLine);
    if (fits) return { lines: [...head, ...body, ...tail], scale };
    if (scale === 1) return { lines: [...head, ...truncate(body, Math.max(1, left)), ...tail], scale };
  }
}

function truncate(lines: Line[], count: number): Line[] {
  const last = lines[count - 1] as Line;
  return [...lines.slice(0, count - 1), { ...last, text: `${last.text.slice(0, -3)}...` }];
}

function drawLines(canvas: Canvas, { lines, scale }: { lines: Line[]; scale: number }, margin: number): void {
  let y = margin;
  for (const { text, colour, mark } of lines) {
    if (mark !== undefined) canvas.fill(margin, y, 7 * scale, 7 * scale, mark);
    const x = mark === undefined ? margin : margin + 2 * CHARACTER_WIDTH * scale;
    canvas.write(text, x, y, scale, colour);
    y += LINE_HEIGHT * scale;
  }
}

function drawFrame(canvas: Canvas, thickness: number, colour: number): void {
  const { width, height } = canvas;
  canvas.fill(0, 0, width, height, colour);
  canvas.fill(thickness, thickness, width - 2 * thickness, height - 2 * thickness, BACKGROUND);
}

function sourceColour({ sha256 }: Source): number {
  return SOURCES + (Number.parseInt(sha256.slice(0, 8), 16) % sourceColours.length);
}

function hash(text: string): number {
  let value = 0x811c9dc5;
  for (let index = 0; index < text.length; index += 1) value = Math.imul(value ^ text.charCodeAt(index), 0x01000193);
  return value >>> 0;
}

/** Hue in degrees, saturation and lightness from 0 to 1 (https://www.w3.org/TR/css-color-4/#hsl-to-rgb). */
function toColour(hue: number, saturation: number, lightness: number): Colour {
  const channel = (shift: number): number => {
    const position = (shift + hue / 30) % 12;
    const amount = saturation * Math.min(lightness, 1 - lightness);
    return Math.round(255 * (lightness - amount * Math.max(-1, Math.min(position - 3, 9 - position, 1))));
  };
  return [channel(0), channel(8), channel(4)];
}
