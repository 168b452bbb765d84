import type { ChatRequest } from '../../../shared/capabilities/chat.ts';
import type { Downloader } from '../../http/download.ts';
import type { HttpClient } from '../../http/http-client.ts';
import { requestText } from '../request-body.ts';
import { InlineMedia } from '../support/inline-media.ts';
import type { VendorCall, VendorMethod } from '../vendor.ts';
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
  return async (call, sink) => {
    const { signal, silenceMs } = call;
    const path = conversePath(call);
    const body = await toConverseRequest(call, new InlineMedia(call, download));
    const request = { path, body, headers: await sign(path, body), signal, silenceMs };
    const maxCalls = maxCallsOf(call);
    if (!call.stream) return toHeldConverse(readConverse((await http.post(request)) ?? '', maxCalls));
    const stream = new BedrockStream(errors, sink, maxCalls);
    try {
      const text = await http.post({ ...request, onChunk: (bytes) => stream.read(bytes) });
      if (text !== null) stream.writeAnswer(text);
      return stream.end();
    } catch (error) {
      throw stream.failure(error);
    }
  };
}

const oneByOne = /"parallel_tool_calls"\s*:\s*false/;

/** Only Claude can be told to make one call at a time: of another model's, the first is passed on, and it makes the next afterwards. */
function maxCallsOf({ request }: Pick<VendorCall, 'request'>): number {
  const text = requestText(request);
  const isOne = oneByOne.test(text) && (JSON.parse(text) as ChatRequest).parallel_tool_calls === false;
  return isOne ? 1 : Number.POSITIVE_INFINITY;
}
