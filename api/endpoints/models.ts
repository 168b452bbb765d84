import type { Middleware } from 'koa';
import { ApiError } from '../../shared/errors.ts';
import type { Services } from '../services.ts';
import type { State } from '../state.ts';

interface WireModel {
  readonly id: string;
  readonly object: 'model';
  readonly created: number;
  readonly owned_by: string;
}

const toWire = (model: { id: string; created: number; ownedBy: string }): WireModel => ({
  id: model.id,
  object: 'model',
  created: model.created,
  owned_by: model.ownedBy,
});

/** `GET /v1/models`: the models that are usable now. */
export function listModels(services: Services): Middleware<State> {
  return (ctx) => {
    ctx.state.endpoint = 'models';
    ctx.body = { object: 'list', data: services.catalogue.list().map(toWire) };
  };
}

/** `GET /v1/models/{id}`; ids may contain slashes. */
export function retrieveModel(services: Services): Middleware<State> {
  return (ctx) => {
    ctx.state.endpoint = 'models';
    const id = ctx.params.id as string;
    const model = services.catalogue.find(id);
    if (model === undefined) {
      throw new ApiError('model_not_found', `The model \`${id}\` does not exist or is not available here.`, {
        param: 'model',
      });
    }
    ctx.body = toWire(model);
  };
}
