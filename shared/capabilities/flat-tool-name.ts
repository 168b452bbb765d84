import { createHash } from 'node:crypto';

/** What OpenAI's wire takes for the name of a chat's function; those of responses may be longer. */
const chatName = /^[a-zA-Z0-9_-]{1,64}$/;

/**
 * The name under which a chat model, which knows no namespaces, is offered a tool of a Responses request:
 * `calendar__create_event`. One that is no name for a chat keeps what it can of its beginning, and ends in a hash of the
 * whole. A flat name cannot be taken apart: whoever has one finds its tool by the flat names of the request's tools.
 */
export function flatToolName(namespace: string | null | undefined, name: string): string {
  const flat = namespace ? `${namespace}__${name}` : name;
  if (chatName.test(flat)) return flat;
  const hash = createHash('sha256').update(flat).digest('hex').slice(0, 8);
  return `${flat.slice(0, 55).replace(/[^a-zA-Z0-9_-]/g, '_')}_${hash}`;
}
