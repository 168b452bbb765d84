import { address, noAnswer, RequestError, readError } from '../../api/request.ts';
import { readEvents } from '../playground/chat/read-events.ts';

/** Additions of one event of a job to the display. */
export interface WatchedEvent {
  /** Text to append. */
  readonly text?: string;
  /** 0 to 100. */
  readonly progress?: number;
  /** A data URL. */
  readonly picture?: string;
  /** Message of the error that ended the job. */
  readonly error?: string;
}

/** Retries after a broken connection, one second apart. */
const maxTries = 10;
const pauseMs = 1000;

/**
 * Follows a job's events from beginning to end. A broken connection is resumed after the last received event: no event is
 * reported twice.
 * @throws RequestError when it cannot be followed (any longer); AbortError.
 */
export async function watchJob(id: string, onEvent: (event: WatchedEvent) => void, signal: AbortSignal): Promise<void> {
  let lastId: string | undefined;
  for (let failures = 0; ; ) {
    try {
      const response = await open(id, lastId, signal);
      for await (const { id: eventId, data } of readEvents(response.body as ReadableStream<Uint8Array>)) {
        failures = 0;
        lastId = eventId ?? lastId;
        if (data === '[DONE]') return;
        onEvent(describeEvent(JSON.parse(data) as WireEvent));
      }
      return;
    } catch (error) {
      signal.throwIfAborted();
      failures += 1;
      if (error instanceof RequestError) throw error;
      if (failures >= maxTries) throw noAnswer();
      await new Promise((resolve) => setTimeout(resolve, pauseMs));
    }
  }
}

async function open(id: string, lastId: string | undefined, signal: AbortSignal): Promise<Response> {
  const response = await fetch(address(`/jobs/${id}/events`), {
    signal,
    ...(lastId !== undefined && { headers: { 'last-event-id': lastId } }),
  });
  if (!response.ok) throw await readError(response);
  return response;
}

interface WireEvent {
  readonly type?: string;
  readonly choices?: readonly {
    readonly index?: number;
    readonly delta?: { content?: string | null };
    readonly text?: string;
  }[];
  readonly delta?: unknown;
  readonly progress?: number;
  readonly b64_json?: string;
  readonly error?: { readonly message?: string } | null;
  readonly response?: { readonly error?: { readonly message?: string } | null };
}

/** The events of all endpoints: chunks of chats and completions, and the typed events of the others. */
function describeEvent(event: WireEvent): WatchedEvent {
  const error = event.error?.message ?? event.response?.error?.message;
  if (error !== undefined) return { error };
  if (event.b64_json !== undefined) return { picture: `data:image/png;base64,${event.b64_json}` };
  if (event.progress !== undefined) return { progress: event.progress };
  if (event.choices !== undefined) {
    // Of several answers at once, the first one.
    const choice = event.choices.find(({ index = 0 }) => index === 0);
    return { text: choice?.delta?.content ?? choice?.text ?? '' };
  }
  // Arguments of a tool call are not text of the answer.
  if (event.type?.includes('arguments')) return {};
  if (typeof event.delta === 'string') return { text: event.delta };
  const text = (event.delta as { text?: unknown } | undefined)?.text;
  return typeof text === 'string' ? { text } : {};
}
