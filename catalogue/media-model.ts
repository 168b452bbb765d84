import { capabilityOf } from '../shared/catalogue/capability-of.ts';
import type { Model, Traits } from '../shared/catalogue/model.ts';
import { seconds } from './chat-models.ts';
import { readModelsDev } from './models-dev.ts';
import { piAiDate } from './pi-ai.ts';
import type { SourceName } from './sources.ts';

/** A row, and which source names the model as one that is offered now. */
export interface MediaModel {
  readonly row: Model;
  /** Undefined: its vendor's page does, which stands beside the row. */
  readonly named: readonly [source: SourceName, name: string] | undefined;
}

const modelsDev = readModelsDev();

/** What is known of such a model beside its traits. */
export interface MediaFacts extends Pick<Model, 'prices' | 'contextWindow' | 'maxOutputTokens'> {
  readonly vendor: string;
  /** What the vendor calls it; left out: the id. */
  readonly model?: string;
  readonly maker: string;
  readonly input: Model['input'];
  readonly output: Model['output'];
  /** Its id in models.dev, which tells its release. */
  readonly dated?: string;
  readonly named: MediaModel['named'];
}

/** Makes a row. */
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

/** Pictures of any size, as links. */
export const linkedImages = (tasks: NonNullable<Model['image']>['tasks'], most = 1): Traits => ({
  image: { tasks, most, partial: false, responseFormat: true },
});
