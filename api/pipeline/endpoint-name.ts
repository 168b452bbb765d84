/** Stable names of the endpoints that make jobs: they are stored with each job, and find its views again. */
export type EndpointName =
  | 'chat'
  | 'completions'
  | 'embeddings'
  | 'images.generations'
  | 'images.edits'
  | 'images.variations'
  | 'audio.transcriptions'
  | 'audio.translations'
  | 'audio.speech'
  | 'responses'
  | 'responses.ws'
  | 'messages'
  | 'messages.count_tokens'
  | 'videos'
  | 'videos.remix';
