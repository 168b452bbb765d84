import type { ServerResponse } from 'node:http';
import { sendJson } from './response.ts';
import { WireError } from './wire-error.ts';

/** A model of the sandbox and its features. */
export interface SandboxModel {
  id: string;
  capability: 'chat' | 'completion' | 'embedding' | 'image' | 'transcription' | 'speech' | 'video';
  reasoning: boolean;
  /** Whether a chat model is also available at `/v1/responses`. */
  responses?: true;
}

const models: readonly SandboxModel[] = [
  { id: 'sandbox-chat', capability: 'chat', reasoning: false },
  { id: 'sandbox-reasoning', capability: 'chat', reasoning: true },
  { id: 'sandbox-responses', capability: 'chat', reasoning: false, responses: true },
  { id: 'sandbox-instruct', capability: 'completion', reasoning: false },
  { id: 'sandbox-embedding', capability: 'embedding', reasoning: false },
  { id: 'sandbox-image', capability: 'image', reasoning: false },
  { id: 'sandbox-transcribe', capability: 'transcription', reasoning: false },
  { id: 'sandbox-speech', capability: 'speech', reasoning: false },
  { id: 'sandbox-video', capability: 'video', reasoning: false },
  { id: 'sandbox-video-portrait', capability: 'video', reasoning: false },
];

const modelsById = new Map(models.map((model) => [model.id, model]));

/** 1 January 2025: a constant, so that every response about a model is the same. */
const CREATED = 1_735_689_600;

function modelObject(model: SandboxModel) {
  return { id: model.id, object: 'model', created: CREATED, owned_by: 'sandbox' };
}

const listBody = JSON.stringify({ object: 'list', data: models.map(modelObject) });

/**
 * The model with this id.
 * @throws WireError 404 `model_not_found`, in OpenAI's wording.
 */
export function findModel(id: string, capability?: SandboxModel['capability']): SandboxModel {
  const model = modelsById.get(id);
  if (model === undefined || (capability !== undefined && model.capability !== capability)) {
    throw new WireError(404, `The model \`${id.slice(0, 200)}\` does not exist or you do not have access to it.`, {
      code: 'model_not_found',
      param: 'model',
    });
  }
  return model;
}

/** `GET /v1/models` */
export function listModels(response: ServerResponse): void {
  sendJson(response, 200, listBody);
}

/** `GET /v1/models/{id}` */
export function retrieveModel(response: ServerResponse, id: string): void {
  sendJson(response, 200, JSON.stringify(modelObject(findModel(id))));
}
