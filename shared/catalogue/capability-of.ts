import { type Capability, capabilities } from '../capabilities/capability.ts';
import type { Traits } from './model.ts';

/** The capability that a model's traits belong to, or chat if none. */
export function capabilityOf(traits: Traits): Capability {
  return capabilities.find((capability) => Object.hasOwn(traits, capability)) ?? 'chat';
}
