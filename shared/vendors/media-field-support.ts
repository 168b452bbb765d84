import { type FieldSupport, supportOf } from '../catalogue/chat-fields.ts';
import type { MediaCapability } from '../catalogue/media-fields.ts';
import { type Dialect, ownWire } from './vendors.ts';

/** The support of a field of `givenMediaFields` at a vendor of a dialect, with one of its models. */
export function mediaFieldSupport(
  { dialect, capability, model }: { dialect: Dialect; capability: MediaCapability; model: string },
  field: string,
): FieldSupport {
  const known = ownWire(dialect)?.mediaFields?.[capability];
  if (known === undefined) return 'native';
  return supportOf(typeof known === 'function' ? known(model) : known, field);
}
