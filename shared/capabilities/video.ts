/** The request of a video job, the same for every vendor. */
export interface VideoJob {
  readonly prompt: string;
  /** Undefined: as is usual for the model. */
  readonly size?: string;
  /** Length of the clip, a whole number. */
  readonly seconds?: string;
  /** The picture that the video begins with, a link or data URL; null where there is none, or an upload beside the job. */
  readonly input: { readonly image_url: string } | null;
  /** The video that is made anew by another prompt, as its vendor knows it. */
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

/** What can be fetched of a finished video. */
export const videoVariants = ['video', 'thumbnail', 'spritesheet'] as const;
export type VideoVariant = (typeof videoVariants)[number];

/** A `progress` frame. */
export interface VideoProgress {
  /** Percent, a whole number that never goes back. */
  readonly progress: number;
}

/** An `end` frame. */
export interface VideoEnd {
  /** Who made it, by which of the keys, and what it is called there: a remix needs them. */
  readonly vendor: string;
  readonly account?: string;
  readonly task: string;
  /** As the vendor made it; undefined where it does not say. */
  readonly size?: string;
  readonly seconds?: string;
  /** When it was seen to be finished, and until when its files stay, in seconds since 1970. */
  readonly completedAt: number;
  readonly expiresAt: number;
  /** The files, the gateway's own copies. Variants that the vendor does not have are missing. */
  readonly files: Readonly<Partial<Record<VideoVariant, VideoFile>>> & { readonly video: VideoFile };
}
