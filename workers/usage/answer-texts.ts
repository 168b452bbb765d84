import { fieldsOf, numberOf, objectsOf } from '../../shared/capabilities/vendor-values.ts';

type Fields = Readonly<Record<string, unknown>>;

/** Joins the texts of parts. */
export function textsOf(parts: unknown): string {
  return objectsOf(parts)
    .map(({ text }) => (typeof text === 'string' ? text : ''))
    .join('');
}

/** Joins the pieces of each text, because tokens span pieces. */
export class AnswerTexts {
  /** Whether the pieces came as events of a vendor's own Responses API. */
  areEvents = false;
  readonly #reasoning = new Map<string, string>();
  readonly #others = new Map<string, string>();

  /** @param key what the pieces of one text have in common */
  add(key: string, piece: unknown, isReasoning = false): void {
    if (typeof piece !== 'string') return;
    const texts = isReasoning ? this.#reasoning : this.#others;
    texts.set(key, (texts.get(key) ?? '') + piece);
  }

  /** The text of a legacy completion's choice; empty if it has not begun. */
  ofChoice(index: number): string {
    return this.#others.get(textKey(index)) ?? '';
  }

  get reasoning(): string[] {
    return [...this.#reasoning.values()];
  }

  get others(): string[] {
    return [...this.#others.values()];
  }
}

/** Reads the texts of frames: a chat's, a legacy completion's, those of a vendor's own Responses API. @throws SyntaxError */
export function readTexts(frames: readonly string[]): AnswerTexts {
  const texts = new AnswerTexts();
  for (const frame of frames) {
    const said = fieldsOf(JSON.parse(frame));
    for (const choice of objectsOf(said.choices)) readChoice(choice, texts);
    if (typeof said.type === 'string') {
      texts.areEvents = true;
      readEvent(said, texts);
    }
    for (const [index, item] of objectsOf(fieldsOf(said.response).output).entries())
      readItem(item, `item ${index}`, texts);
  }
  return texts;
}

function textKey(choice: number): string {
  return `${choice} text`;
}

/** A choice of a chat or of a legacy completion, whole or a piece of it. */
function readChoice(choice: Fields, texts: AnswerTexts): void {
  const key = `${numberOf(choice.index)}`;
  texts.add(textKey(numberOf(choice.index)), choice.text);
  const said = fieldsOf(choice.delta ?? choice.message);
  texts.add(`${key} content`, said.content);
  texts.add(`${key} refusal`, said.refusal);
  // Some vendors have the other name, and some both for the same text.
  texts.add(`${key} reasoning`, said.reasoning_content ?? said.reasoning, true);
  const calls = objectsOf(said.tool_calls).map(
    (call, at) => [numberOf(call.index, at), call.function ?? call.custom] as const,
  );
  for (const [at, called] of [...calls, ['legacy', said.function_call] as const]) {
    const { name, arguments: json, input } = fieldsOf(called);
    texts.add(`${key} call ${at}`, name);
    texts.add(`${key} call ${at}`, json ?? input);
  }
}

/** An event of a vendor's own Responses API: its deltas are pieces of texts, its other fields repeat them. */
function readEvent({ type, delta, item, output_index: place }: Fields, texts: AnswerTexts): void {
  const kind = String(type);
  const index = numberOf(place);
  if (kind.endsWith('.delta')) texts.add(`item ${index} ${kind}`, delta, kind.includes('reasoning'));
  else if (kind === 'response.output_item.added') texts.add(`item ${index} name`, fieldsOf(item).name);
}

/** An item of a response that was not streamed. */
function readItem(item: Fields, key: string, texts: AnswerTexts): void {
  texts.add(`${key} name`, item.name);
  texts.add(`${key} input`, item.arguments ?? item.input);
  texts.add(`${key} summary`, textsOf(item.summary), true);
  for (const { text, refusal } of objectsOf(item.content)) {
    texts.add(`${key} content`, text ?? refusal, item.type === 'reasoning');
  }
}
