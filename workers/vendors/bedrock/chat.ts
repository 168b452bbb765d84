import type { Downloader } from '../../http/download.ts';
import type { HttpClient } from '../../http/http-client.ts';
import { requestAfterRefusal } from '../anthropic/refusals.ts';
import { wantsOneCall } from '../request-body.ts';
import { callInPlace } from '../support/delta-stream.ts';
import { InlineMedia } from '../support/inline-media.ts';
import type { VendorMethod } from '../vendor.ts';
import { readConverse, toHeldConverse } from './answer.ts';
import type { BedrockErrors } from './errors.ts';
import { conversePath, toConverseRequest } from './request.ts';
import type { SignRequest } from './signature.ts';
import { BedrockStream } from './stream.ts';

/** Chats as conversations (https://docs.aws.amazon.com/bedrock/latest/userguide/conversation-inference.html). */
export function bedrockChat(
  http: HttpClient,
  { sign, errors, download }: { sign: SignRequest; errors: BedrockErrors; download: Downloader },
): VendorMethod {
  const chat: VendorMethod = async (call, sink) => {
    const { signal, silenceMs, holder } = call;
    const path = conversePath(call);
    const body = await toConverseRequest(call, new InlineMedia(call, download));
    const request = { path, body, headers: await sign(path, body), signal, silenceMs, holder };
    // Only Claude can be told: of another model's calls the first is passed on.
    const maxCalls = wantsOneCall(call.request) ? 1 : Number.POSITIVE_INFINITY;
    let stream: BedrockStream | undefined;
    try {
      if (!call.stream) return toHeldConverse(readConverse((await http.post(request)) ?? '', maxCalls));
      const events = new BedrockStream(errors, sink, maxCalls);
      stream = events;
      const text = await http.post({ ...request, onChunk: (bytes) => events.read(bytes) });
      if (text !== null) events.writeAnswer(text);
      return events.end();
    } catch (thrown) {
      return await chat(callInPlace(thrown, stream, call, requestAfterRefusal), sink);
    }
  };
  return chat;
}
