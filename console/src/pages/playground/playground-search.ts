/** The tabs of the playground, in their order. */
export const playgroundTabs = ['chat', 'image', 'video', 'speech', 'transcription'] as const;
export type PlaygroundTab = (typeof playgroundTabs)[number];

/** The tab that an address names, and the model that is to be tried in it. */
export function readPlaygroundSearch(search: Record<string, unknown>): { tab?: PlaygroundTab; model?: string } {
  const tab = playgroundTabs.find((name) => name === search.tab);
  const { model } = search;
  return {
    ...(tab === undefined ? {} : { tab }),
    // The address does not tell a number from a text.
    ...(typeof model === 'string' || typeof model === 'number' ? { model: String(model) } : {}),
  };
}
