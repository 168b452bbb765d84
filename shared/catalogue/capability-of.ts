import { type Capability, capabilities } from '../capabilities/capability.ts';
import type { Traits } from './model.ts';

/** A model's capability is what its traits are of, else chat. */
export function capabilityOf(traits: Traits): Capability {
  return capabilities.find((capability) => Object.hasOwn(traits, capability)) ?? 'chat';
}
