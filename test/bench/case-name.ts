export type CaseName =
  | 'held'
  | 'streams'
  | 'single'
  | 'paced'
  | 'large'
  | 'large-streams'
  | 'neighbour'
  | 'neighbour-2mb'
  | 'embeddings'
  | 'images'
  | 'open';
