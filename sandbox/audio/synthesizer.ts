/** Samples per second; one channel of 16 bits. */
export const SAMPLE_RATE = 24_000;

/** A text and how to speak it. */
export interface Utterance {
  text: string;
  /** Changes the pitch. */
  voice: string;
  /** Changes the melody: the same text sounds different. */
  instructions: string;
  /** 1 is normal, 2 twice as fast. */
  speed: number;
}

/** One sound: a buzz at the mouth's resonances, a noise, or silence. */
interface Sound {
  kind: 'voiced' | 'noise' | 'silence';
  /** Resonances in Hz; a noise has one. */
  formants: readonly number[];
  milliseconds: number;
}

const vowels: Readonly<Record<string, readonly number[]>> = {
  a: [730, 1090, 2440],
  e: [530, 1840, 2480],
  i: [270, 2290, 3010],
  o: [570, 840, 2410],
  u: [300, 870, 2240],
  y: [390, 1990, 2550],
};
const hums: Readonly<Record<string, readonly number[]>> = {
  b: [250, 700, 2200],
  d: [250, 1700, 2600],
  g: [250, 2000, 2400],
  j: [280, 2100, 2900],
  l: [360, 1300, 2700],
  m: [250, 1000, 2200],
  n: [250, 1450, 2300],
  r: [420, 1300, 1600],
  v: [250, 1100, 2300],
  w: [290, 610, 2150],
  z: [250, 1600, 2600],
};
const noises: Readonly<Record<string, number>> = {
  c: 3500,
  f: 6000,
  h: 1500,
  k: 2000,
  p: 900,
  q: 1800,
  s: 6500,
  t: 4000,
  x: 4500,
};
const pauses: Readonly<Record<string, number>> = { ',': 160, ';': 180, ':': 180, '.': 260, '!': 260, '?': 260 };

/** Fundamental frequency of each voice in Hz. */
export const voicePitches: Readonly<Record<string, number>> = {
  alloy: 150,
  ash: 110,
  ballad: 125,
  cedar: 100,
  coral: 205,
  echo: 115,
  fable: 165,
  marin: 215,
  nova: 220,
  onyx: 85,
  sage: 190,
  shimmer: 235,
  verse: 130,
};

function soundOf(character: string): Sound {
  const letter = character.normalize('NFD').charAt(0).toLowerCase();
  const voiced = vowels[letter];
  if (voiced !== undefined) return { kind: 'voiced', formants: voiced, milliseconds: 90 };
  const hum = hums[letter];
  if (hum !== undefined) return { kind: 'voiced', formants: hum, milliseconds: 60 };
  const noise = noises[letter];
  if (noise !== undefined) return { kind: 'noise', formants: [noise], milliseconds: 50 };
  const pause = pauses[character];
  if (pause !== undefined) return { kind: 'silence', formants: [], milliseconds: pause };
  if (!/[\p{L}\p{N}]/u.test(character)) return { kind: 'silence', formants: [], milliseconds: 50 };
  // Digits and letters of other scripts: always the same vowel per character.
  const formants = Object.values(vowels)[(character.codePointAt(0) ?? 0) % 6];
  return { kind: 'voiced', formants: formants ?? [], milliseconds: 110 };
}

function samplesOf(sound: Sound, speed: number): number {
  return Math.round((sound.milliseconds * SAMPLE_RATE) / 1000 / speed);
}

/** The number of samples of the utterance. */
export function countSamples({ text, speed }: Utterance): number {
  let samples = 0;
  for (const character of text) samples += samplesOf(soundOf(character), speed);
  return samples;
}

/** Synthesizes the text: the samples of one character after the other. The same utterance always gives the same sound. */
export function* synthesize(utterance: Utterance): Generator<Int16Array> {
  const { text, speed } = utterance;
  const pitch = voicePitches[utterance.voice] ?? 90 + (hash(utterance.voice) % 150);
  const melody = hash(utterance.instructions);
  let index = 0;
  for (const character of text) {
    const sound = soundOf(character);
    const samples = new Int16Array(samplesOf(sound, speed));
    // The pitch rises and falls by up to a sixth.
    const swing = Math.sin(index * (0.35 + (melody % 100) / 200)) / 6;
    if (sound.kind === 'voiced') fillVoiced(samples, sound.formants, pitch * (1 + swing));
    else if (sound.kind === 'noise') fillNoise(samples, sound.formants[0] as number);
    soften(samples);
    yield samples;
    index += 1;
  }
}

/** Each opening of the vocal cords excites the mouth: decaying tones, restarted with every period of the pitch. */
function fillVoiced(samples: Int16Array, formants: readonly number[], pitch: number): void {
  const period = Math.round(SAMPLE_RATE / pitch);
  const wave = Int16Array.from({ length: period }, (_, index) => {
    const seconds = index / SAMPLE_RATE;
    const rings = formants.map((hertz, rank) => Math.sin(2 * Math.PI * hertz * seconds) / (1 + rank));
    return 9000 * Math.exp(-250 * seconds) * rings.reduce((sum, ring) => sum + ring, 0);
  });
  for (let index = 0; index < samples.length; index += 1) samples[index] = wave[index % period] as number;
}

/** Noise around one frequency: white noise through a two-pole resonator. */
function fillNoise(samples: Int16Array, hertz: number): void {
  const radius = 0.9;
  const feedback = 2 * radius * Math.cos((2 * Math.PI * hertz) / SAMPLE_RATE);
  let state = hertz;
  let last = 0;
  let beforeLast = 0;
  for (let index = 0; index < samples.length; index += 1) {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) | 0;
    const value = state / 2 ** 20 + feedback * last - radius * radius * beforeLast;
    beforeLast = last;
    last = value;
    samples[index] = Math.max(-12_000, Math.min(12_000, value));
  }
}

/** Fades in and out over four milliseconds: otherwise every sound would start with a click. */
function soften(samples: Int16Array): void {
  const length = Math.min(SAMPLE_RATE / 250, samples.length >> 1);
  for (let index = 0; index < length; index += 1) {
    const end = samples.length - 1 - index;
    samples[index] = ((samples[index] as number) * index) / length;
    samples[end] = ((samples[end] as number) * index) / length;
  }
}

function hash(text: string): number {
  let value = 0x811c9dc5;
  for (let index = 0; index < text.length; index += 1) value = Math.imul(value ^ text.charCodeAt(index), 0x01000193);
  return value >>> 0;
}
