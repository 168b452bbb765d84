import type { KeySettings } from '../../shared/accounts/api-keys.ts';
import type { Capability } from '../../shared/capabilities/capability.ts';
import { ApiError } from '../../shared/errors.ts';

/** What a key is limited to. */
export type KeyScopes = Pick<KeySettings, 'capabilities' | 'models'>;

/** What is asked of a key: a model by the id that the request names, and what it is to do. */
export interface WantedModel {
  readonly id: string;
  readonly capability: Capability;
}

/** Whether a key may use a model. */
export function isInScope(scopes: KeyScopes, wanted: WantedModel | undefined): boolean {
  return wanted !== undefined && mayUseCapability(scopes, wanted.capability) && mayUseModel(scopes, wanted.id);
}

/**
 * A model that is outside of a key's scope is told to be so: what models there are is no secret (the price list shows them),
 * and a caller who reads 404 would look for a spelling mistake. A model that stands in for one that the key may use is the
 * operator's choice, and is not asked about.
 * @throws ApiError 403 that names what is not allowed.
 */
export function assertInScope(scopes: KeyScopes, wanted: WantedModel): void {
  if (!mayUseCapability(scopes, wanted.capability)) {
    throw new ApiError(
      'permission_denied',
      `This API key may not be used for the capability \`${wanted.capability}\`.`,
    );
  }
  if (!mayUseModel(scopes, wanted.id)) {
    throw new ApiError('permission_denied', `This API key may not use the model \`${wanted.id}\`.`, { param: 'model' });
  }
}

function mayUseCapability({ capabilities }: KeyScopes, capability: Capability): boolean {
  return capabilities === undefined || capabilities.includes(capability);
}

function mayUseModel({ models }: KeyScopes, id: string): boolean {
  if (models === undefined) return true;
  return models.some((model) => (model.endsWith('*') ? id.startsWith(model.slice(0, -1)) : id === model));
}
