/** The tabs of the playground, in order. */
export const playgroundTabs = ['chat', 'image', 'video', 'speech', 'transcription'] as const;
export type PlaygroundTab = (typeof playgroundTabs)[number];

/** Parses the tab of an address, and the model to try in it. */
export function readPlaygroundSearch(search: Record<string, unknown>): { tab?: PlaygroundTab; model?: string } {
  const tab = playgroundTabs.find((name) => name === search.tab);
  const { model } = search;
  return {
    ...(tab === undefined ? {} : { tab }),
    // An address does not distinguish a number from a text.
    ...(typeof model === 'string' || typeof model === 'number' ? { model: String(model) } : {}),
  };
}
