import { capabilityOf } from '../shared/catalogue/capability-of.ts';
import type { Model, Traits } from '../shared/catalogue/model.ts';
import { seconds } from './chat-models.ts';
import { readModelsDev } from './models-dev.ts';
import { piAiDate } from './pi-ai.ts';
import type { SourceName } from './sources.ts';

/** A row, with the source that lists the model as currently offered. */
export interface MediaModel {
  readonly row: Model;
  /** Undefined: the vendor's page does, whose link is beside the row. */
  readonly named: readonly [source: SourceName, name: string] | undefined;
}

const modelsDev = readModelsDev();

/** Facts about such a model, except its traits. */
export interface MediaFacts extends Pick<Model, 'prices' | 'contextWindow' | 'maxOutputTokens'> {
  readonly vendor: string;
  /** The vendor's name of it; left out: the id. */
  readonly model?: string;
  readonly maker: string;
  readonly input: Model['input'];
  readonly output: Model['output'];
  /** Its id in models.dev, which has its release date. */
  readonly dated?: string;
  readonly named: MediaModel['named'];
}

/** Creates a row. */
export function media(id: string, facts: MediaFacts, traits: Traits): MediaModel {
  const { vendor, model = id, maker, dated, named, ...rest } = facts;
  const date = dated === undefined ? undefined : modelsDev.models[dated]?.released;
  return {
    named,
    row: {
      id,
      created: seconds(date ?? piAiDate()),
      ownedBy: maker,
      capability: capabilityOf(traits),
      routes: [{ vendor, model }],
      ...rest,
      ...traits,
    },
  };
}

/** Images of any size, as links. */
export const linkedImages = (tasks: NonNullable<Model['image']>['tasks'], most = 1): Traits => ({
  image: { tasks, most, partial: false, responseFormat: true },
});
