export const releaseBefore: string;
export function whyNotBuilt(): Promise<string | undefined>;
export function buildReleaseBefore(): Promise<void>;
