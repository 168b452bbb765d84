/** The request of a video job, the same for every vendor. */
export interface VideoJob {
  readonly prompt: string;
  /** Undefined: the model's default. */
  readonly size?: string;
  /** Length of the clip, a whole number. */
  readonly seconds?: string;
  /** The video's first picture, a link or data URL; null if there is none, or if it is an upload beside the job. */
  readonly input: { readonly image_url: string } | null;
  /** The existing video to be remixed with another prompt, as its vendor identifies it. */
  readonly remixed: { readonly vendor: string; readonly account?: string; readonly task: string } | null;
  /** The caller's other fields: they pass through. */
  readonly parameters: Readonly<Record<string, unknown>>;
}

/** A file of a finished video. */
export interface VideoFile {
  /** Id of its blob. */
  readonly file: string;
  /** Media type: `video/mp4`. */
  readonly type: string;
  readonly bytes: number;
}

/** The downloadable files of a finished video. */
export const videoVariants = ['video', 'thumbnail', 'spritesheet'] as const;
export type VideoVariant = (typeof videoVariants)[number];

/** A `progress` frame. */
export interface VideoProgress {
  /** Percent, a whole number that never decreases. */
  readonly progress: number;
}

/** An `end` frame. */
export interface VideoEnd {
  /** The vendor, the key used, and the vendor's id of the task: a remix needs them. */
  readonly vendor: string;
  readonly account?: string;
  readonly task: string;
  /** The actual size; undefined if the vendor does not report it. */
  readonly size?: string;
  readonly seconds?: string;
  /** When completion was detected, and when its files expire, in seconds since 1970. */
  readonly completedAt: number;
  readonly expiresAt: number;
  /** The files, as the gateway's own copies. Variants that the vendor does not have are missing. */
  readonly files: Readonly<Partial<Record<VideoVariant, VideoFile>>> & { readonly video: VideoFile };
}
