/** The tabs of the playground, in their order. */
export const playgroundTabs = ['chat', 'image', 'video', 'speech', 'transcription'] as const;
export type PlaygroundTab = (typeof playgroundTabs)[number];

/** The tab that an address names. */
export function readPlaygroundSearch(search: Record<string, unknown>): { tab?: PlaygroundTab } {
  const tab = playgroundTabs.find((name) => name === search.tab);
  return tab === undefined ? {} : { tab };
}
