import { ApiError } from '../../../shared/errors.ts';
import { createDownloader, type Downloader } from '../../http/download.ts';
import type { HttpClientOptions } from '../../http/exchange.ts';
import { createHttpClient, type HttpClient } from '../../http/http-client.ts';
import { deliverLinks, ImageDelivery, wantedFormat } from '../support/image-delivery.ts';
import {
  aspectRatio,
  type ImageRequest,
  inputImages,
  readImageRequest,
  refuseCompression,
  refuseSeveral,
} from '../support/image-request.ts';
import { isObject, type JsonObject } from '../support/json-object.ts';
import { unsupportedField } from '../support/unsupported-field.ts';
import { afterBegin, awaitTask, beginTask, contentRefused, unknownOutcome } from '../support/vendor-task-calls.ts';
import type { Offering, VendorCall } from '../vendor.ts';
import type { VendorOptions } from '../vendor-options.ts';

/*
 * FLUX of Black Forest Labs (https://docs.bfl.ai, read 2026-11-21): a model is a path, an image a task that is polled by
 * the link that its creation returns.
 *
 * | OpenAI                    | Black Forest Labs                                                      |
 * |---------------------------|------------------------------------------------------------------------|
 * | prompt                    | prompt                                                                 |
 * | size                      | width and height; aspect_ratio with Kontext and Ultra; `auto`: neither |
 * | output_format             | output_format                                                          |
 * | image, images             | input_image, input_image_2, … input_image_8 (base64 or links)          |
 * | n, output_compression     | refused except 1 and 100                                               |
 * | mask, stream, variations  | refused                                                                |
 * | background, moderation, quality, style, input_fidelity | refused except their defaults             |
 * | user                      | left out                                                               |
 * | any other                 | as it is: seed, safety_tolerance, prompt_upsampling, guidance, steps   |
 */

/** Maximum input images of one request. */
const maxInputs = 8;
/** Under its global address the vendor has its tasks polled at those of its regions. */
const ownDomain = '.bfl.ai';
const maxRegions = 16;

const unknownTask = "The model's vendor no longer has the image that it had started.";

/** FLUX at Black Forest Labs, including the version: `https://api.bfl.ai/v1`. */
export function createBlackForestLabs({ name, baseUrl, apiKey }: VendorOptions): Offering<'image'> {
  const options = { vendor: name, baseUrl, headers: { 'x-key': apiKey }, secret: apiKey };
  const http = createHttpClient(options);
  const regions = new RegionClients(options);
  const download = createDownloader({ trustedOrigin: new URL(baseUrl).origin });
  return {
    name,
    image: (call) => makeImage(call, http, regions, download),
    close: async () => {
      await Promise.all([http.close(), regions.close()]);
    },
  };
}

async function makeImage(call: VendorCall, http: HttpClient, regions: RegionClients, download: Downloader) {
  const { signal, silenceMs, holder } = call;
  const request = readImageRequest(call);
  const body = JSON.stringify(await composeBody(call, request));
  const task = await beginTask(http, { path: `/${encodeURIComponent(call.model)}`, body, signal, silenceMs });
  return await afterBegin(async () => {
    const { client, path } = regions.clientOf(task.polling_url);
    const sample = await awaitTask(call, {
      ask: () => client.get({ path, notFound: unknownTask, signal, silenceMs, holder }),
      read: readSample,
    });
    const delivery = new ImageDelivery(call, wantedFormat(request.job, false), download);
    return await deliverLinks([sample], delivery, request.format);
  });
}

async function composeBody({ model, files }: VendorCall, request: ImageRequest): Promise<JsonObject> {
  const { job, prompt, size, format, own } = request;
  refuseSeveral(request);
  refuseCompression(request);
  if (job.images.length > maxInputs) throw unsupportedField('image', `at most ${maxInputs} images are allowed`);
  if (job.images.length > 0 && /^flux-(pro|dev)\b/.test(model)) {
    throw unsupportedField('image', 'the model takes no images');
  }
  const shape = size && (/kontext|ultra/.test(model) ? { aspect_ratio: aspectRatio(size) } : size);
  const body: JsonObject = { ...own, prompt, ...shape, ...(format && { output_format: format }) };
  for (const [index, image] of (await inputImages(job, files)).entries()) {
    body[index === 0 ? 'input_image' : `input_image_${index + 1}`] = image.replace(/^data:[^,]*,/, '');
  }
  return body;
}

/** States of a task (https://docs.bfl.ai/api_integration/errors). */
function readSample({ status, result }: JsonObject): string | undefined {
  switch (status) {
    case 'Pending':
      return undefined;
    case 'Ready':
      if (isObject(result) && typeof result.sample === 'string') return result.sample;
      throw new ApiError('server_error', "The model's vendor answered without images.");
    case 'Request Moderated':
    case 'Content Moderated':
      throw contentRefused();
    case 'Task not found':
      throw unknownOutcome(unknownTask);
    default:
      throw new ApiError('server_error', "The model's vendor could not make the image.");
  }
}

/** Whether a link leads to the server that the operator configured, or, if that is the vendor's, to another of its servers. */
export function isOwnAddress(link: URL, base: URL): boolean {
  if (link.origin === base.origin) return true;
  return [base, link].every(
    ({ protocol, port, hostname }) => protocol === 'https:' && port === '' && hostname.endsWith(ownDomain),
  );
}

/** Clients of the servers that the vendor's polling links name. The key goes with each poll, so only to the vendor's own servers. */
class RegionClients {
  private readonly options: HttpClientOptions;
  private readonly clients = new Map<string, HttpClient>();

  constructor(options: HttpClientOptions) {
    this.options = options;
  }

  /** @throws ApiError `outcome_unknown` for a link that leads elsewhere: the task has started, and cannot be polled. */
  clientOf(link: unknown): { readonly client: HttpClient; readonly path: string } {
    const url = typeof link === 'string' && URL.canParse(link) ? new URL(link) : undefined;
    if (url === undefined || !isOwnAddress(url, new URL(this.options.baseUrl))) {
      throw unknownOutcome("The model's vendor began the image, but does not say at its own address how far it is.");
    }
    let client = this.clients.get(url.origin);
    if (client === undefined) {
      if (this.clients.size === maxRegions) throw unknownOutcome("The model's vendor has too many addresses.");
      client = createHttpClient({ ...this.options, baseUrl: url.origin });
      this.clients.set(url.origin, client);
    }
    return { client, path: url.pathname + url.search };
  }

  async close(): Promise<void> {
    await Promise.all([...this.clients.values()].map((client) => client.close()));
  }
}
