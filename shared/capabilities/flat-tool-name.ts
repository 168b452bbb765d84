import { createHash } from 'node:crypto';

/** The function names that OpenAI accepts in chats; those of responses may be longer. */
const chatName = /^[a-zA-Z0-9_-]{1,64}$/;

/**
 * The name under which a tool of a Responses request is offered to a chat model, which has no namespaces:
 * `calendar__create_event`. A name not valid in a chat keeps as much of its beginning as fits, and ends in a hash of the whole.
 * A flat name cannot be split again: its tool is found by comparing the flat names of the request's tools.
 */
export function flatToolName(namespace: string | null | undefined, name: string): string {
  const flat = namespace ? `${namespace}__${name}` : name;
  if (chatName.test(flat)) return flat;
  const hash = createHash('sha256').update(flat).digest('hex').slice(0, 8);
  return `${flat.slice(0, 55).replace(/[^a-zA-Z0-9_-]/g, '_')}_${hash}`;
}
