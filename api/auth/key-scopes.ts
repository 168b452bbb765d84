import type { KeySettings } from '../../shared/accounts/api-keys.ts';
import type { Capability } from '../../shared/capabilities/capability.ts';
import { ApiError } from '../../shared/errors.ts';

/** The restrictions of a key. */
export type KeyScopes = Pick<KeySettings, 'capabilities' | 'models'>;

/** A requested model by the id in the request, and its capability. */
export interface WantedModel {
  readonly id: string;
  readonly capability: Capability;
}

/** Whether a key may use a model. */
export function isInScope(scopes: KeyScopes, wanted: WantedModel | undefined): boolean {
  return wanted !== undefined && mayUseCapability(scopes, wanted.capability) && mayUseModel(scopes, wanted.id);
}

/**
 * Checks a model against a key's scope. The error names the model: models are no secret (the price list shows them), and a
 * 404 would make the caller look for a spelling mistake. Fallbacks of a permitted model are the operator's choice, and are
 * not checked.
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
