type Fields = Readonly<Record<string, unknown>>;

/** The items of a list; none of what is no list. */
export function listOf(value: unknown): Fields[] {
  return Array.isArray(value) ? (value as Fields[]) : [];
}

/** Joins the texts of parts. */
export function textsOf(parts: unknown): string {
  return listOf(parts)
    .map(({ text }) => (typeof text === 'string' ? text : ''))
    .join('');
}

/** Joins the pieces of each text: tokens go across them. */
export class SaidTexts {
  /** Whether the pieces came as events of a vendor's own Responses API. */
  areEvents = false;
  readonly #reasoning = new Map<string, string>();
  readonly #others = new Map<string, string>();

  /** @param place what the pieces of one text have in common */
  add(place: string, piece: unknown, isReasoning = false): void {
    if (typeof piece !== 'string') return;
    const texts = isReasoning ? this.#reasoning : this.#others;
    texts.set(place, (texts.get(place) ?? '') + piece);
  }

  get reasoning(): string[] {
    return [...this.#reasoning.values()];
  }

  get others(): string[] {
    return [...this.#others.values()];
  }
}

/** Reads the texts of frames: a chat's, a legacy completion's, those of a vendor's own Responses API. @throws SyntaxError */
export function readSaid(frames: readonly string[]): SaidTexts {
  const texts = new SaidTexts();
  for (const frame of frames) {
    const said = JSON.parse(frame) as Fields;
    for (const choice of listOf(said.choices)) readChoice(choice, texts);
    if (typeof said.type === 'string') {
      texts.areEvents = true;
      readEvent(said, texts);
    }
    const response = said.response as Fields | null | undefined;
    for (const [place, item] of listOf(response?.output).entries()) readItem(item, `item ${place}`, texts);
  }
  return texts;
}

/** A choice of a chat or of a legacy completion, whole or a piece of it. */
function readChoice(choice: Fields, texts: SaidTexts): void {
  const place = `${choice.index ?? 0}`;
  texts.add(`${place} text`, choice.text);
  const said = (choice.delta ?? choice.message ?? {}) as Fields;
  texts.add(`${place} content`, said.content);
  texts.add(`${place} refusal`, said.refusal);
  texts.add(`${place} reasoning`, said.reasoning_content, true);
  const calls = listOf(said.tool_calls).map((call, at) => [call.index ?? at, call.function ?? call.custom] as const);
  for (const [at, called] of [...calls, ['legacy', said.function_call] as const]) {
    const { name, arguments: json, input } = (called ?? {}) as Fields;
    texts.add(`${place} call ${at}`, name);
    texts.add(`${place} call ${at}`, json ?? input);
  }
}

/** An event of a vendor's own Responses API: its deltas are pieces of texts, all that it has beside them says them again. */
function readEvent({ type, delta, item, output_index: index }: Fields, texts: SaidTexts): void {
  const kind = String(type);
  if (kind.endsWith('.delta')) texts.add(`item ${index} ${kind}`, delta, kind.includes('reasoning'));
  else if (kind === 'response.output_item.added') texts.add(`item ${index} name`, (item as Fields | undefined)?.name);
}

/** An item of a response that was not streamed. */
function readItem(item: Fields, place: string, texts: SaidTexts): void {
  texts.add(`${place} name`, item.name);
  texts.add(`${place} input`, item.arguments ?? item.input);
  texts.add(`${place} summary`, textsOf(item.summary), true);
  for (const { text, refusal } of listOf(item.content)) {
    texts.add(`${place} content`, text ?? refusal, item.type === 'reasoning');
  }
}
